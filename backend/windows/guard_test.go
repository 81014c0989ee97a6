package windows_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

const limit = 20 * time.Second

func count(hns *hnstest.HNS, op windows.Op) (n int) {
	for _, c := range hns.Calls() {
		if strings.HasPrefix(c, string(op)+" ") {
			n++
		}
	}
	return n
}

// ours counts the goroutines that the package has started and that have not ended.
func ours() int {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "created by github.com/antrea-lite/podnet/backend/windows.") +
		strings.Count(string(stacks), "created by github.com/antrea-lite/podnet/internal/join.")
}

// HN-1: a delete that hangs.
func TestHungDeleteIsJoinedAndNeverDoubled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		req := request(hns, 1)
		link, err := l.Link(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		iface := podnettest.RecordOf(req, link)
		release := hns.HangUp(windows.OpDeleteEndpoint)
		for i := range 5 {
			start := time.Now()
			err := l.Unlink(t.Context(), iface)
			if took := time.Since(start); !errors.Is(err, podnet.ErrTryAgain) || took != limit {
				t.Errorf("DEL %d: %v after %v; want %v after %v", i, err, took, podnet.ErrTryAgain, limit)
			}
		}
		if n := ours(); n != 1 {
			t.Errorf("%d goroutines for one delete that hangs", n)
		}
		if n := count(hns, windows.OpDeleteEndpoint); n != 1 {
			t.Errorf("%d deletes of one endpoint", n)
		}
		if h := l.Health(); h.Running != 1 || h.Overdue != 1 || h.Oldest != 5*limit || len(h.Stuck) != 0 {
			t.Errorf("health %+v", h)
		}
		done := make(chan error)
		go func() { done <- l.Unlink(t.Context(), iface) }()
		synctest.Wait()
		release()
		if err := <-done; err != nil {
			t.Errorf("the DEL that was waiting: %v", err)
		}
		if err := l.Unlink(t.Context(), iface); err != nil || len(hns.Endpoints()) != 0 {
			t.Errorf("%v; left %q", err, names(hns))
		}
		if n := count(hns, windows.OpDeleteEndpoint); n != 2 { // the last DEL asked again and heard "not found"
			t.Errorf("%d deletes", n)
		}
	})
}

// A DEL whose own context ends leaves the delete to the next one.
func TestDeleteOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		req := request(hns, 1)
		link, err := l.Link(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		hns.Set(windows.OpDeleteEndpoint, hnstest.Fault{Delay: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Unlink(ctx, podnettest.RecordOf(req, link)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want %v", err, context.DeadlineExceeded)
		}
		start := time.Now()
		if err := l.Unlink(t.Context(), podnettest.RecordOf(req, link)); err != nil || time.Since(start) != 9*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if n := count(hns, windows.OpDeleteEndpoint); n != 1 {
			t.Errorf("%d deletes", n)
		}
	})
}

// HN-14: HNS hangs as a whole.
func TestHNSThatHangsHoldsABoundedNumberOfCalls(t *testing.T) {
	for _, op := range []windows.Op{windows.OpList, windows.OpCreateEndpoint, windows.OpAttach} {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hns := node()
				calls := make(chan windows.Call, 1000)
				l := newLinker(t, hns, func(c *windows.Config) { c.MaxCalls = 3; c.ObserveCall = func(c windows.Call) { calls <- c } })
				requests := make([]podnet.Request, 200)
				for n := range requests {
					requests[n] = request(hns, n)
				}
				release := hns.HangUp(op)
				var adds sync.WaitGroup
				for _, req := range requests {
					adds.Go(func() {
						// As long as kubelet waits for a sandbox.
						ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
						defer cancel()
						if _, err := l.Link(ctx, req); !errors.Is(err, podnet.ErrTryAgain) {
							t.Errorf("%v, want %v", err, podnet.ErrTryAgain)
						}
					})
				}
				adds.Wait()
				synctest.Wait()
				if n := ours(); n == 0 || n > 3 {
					t.Errorf("200 ADDs left %d goroutines, want 3 at most", n)
				}
				if _, most := hns.Running(op); most > 3 {
					t.Errorf("%d calls at one time", most)
				}
				if op != windows.OpList { // whole lists are joined, so one is under way at a time
					if h := l.Health(); h.Overdue != 3 || !slices.Equal(h.Stuck, []windows.Op{op}) {
						t.Errorf("health %+v", h)
					}
					// Nothing is waited for that cannot come.
					start := time.Now()
					if _, err := l.Link(t.Context(), requests[0]); !errors.Is(err, podnet.ErrTryAgain) || time.Since(start) > limit {
						t.Errorf("%v after %v", err, time.Since(start))
					}
				}
				release()
				synctest.Wait()
				if left := names(hns); len(left) != 0 {
					t.Errorf("left behind: %q", left)
				}
				if h := l.Health(); h.Running != 0 || len(h.Stuck) != 0 {
					t.Errorf("health afterwards: %+v", h)
				}
				link, err := l.Link(t.Context(), requests[0])
				if err != nil {
					t.Errorf("the first ADD afterwards: %v", err)
				}
				if err := l.Check(t.Context(), podnettest.RecordOf(requests[0], link)); err != nil {
					t.Error(err)
				}
				if len(calls) == 0 {
					t.Error("no call was observed")
				}
			})
		})
	}
}

// Deletes that hang do not keep containers from starting.
func TestHungDeletesDoNotHoldCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		release := func() {}
		for n := range 10 {
			req := request(hns, n)
			link, err := l.Link(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				release = hns.HangUp(windows.OpDeleteEndpoint)
			}
			go func() { _ = l.Unlink(t.Context(), podnettest.RecordOf(req, link)) }()
		}
		time.Sleep(time.Minute)
		start := time.Now()
		if _, err := l.Link(t.Context(), request(hns, 50)); err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, most := hns.Running(windows.OpDeleteEndpoint); most != 4 {
			t.Errorf("%d deletes at one time", most)
		}
		release()
		synctest.Wait()
	})
}

// A create that returns when nobody waits for it any more is cleaned up, and the
// next attempt neither adopts nor doubles it.
func TestLateCreateIsCleanedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		req := request(hns, 1)
		release := hns.HangUp(windows.OpCreateEndpoint)
		if _, err := l.Link(t.Context(), req); !errors.Is(err, podnet.ErrTryAgain) {
			t.Errorf("%v, want %v", err, podnet.ErrTryAgain)
		}
		start := time.Now()
		if _, err := l.Link(t.Context(), req); !errors.Is(err, podnet.ErrTryAgain) || time.Since(start) != limit {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if n := count(hns, windows.OpCreateEndpoint); n != 1 {
			t.Errorf("%d creates under way for one endpoint", n)
		}
		done := make(chan error, 1)
		var link podnet.Link
		go func() {
			var err error
			link, err = l.Link(t.Context(), req)
			done <- err
		}()
		synctest.Wait()
		release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if list := hns.Endpoints(); len(list) != 1 || list[0].ID.String() != link.Extra["hns-endpoint"] {
			t.Errorf("endpoints %v; want the one of the last attempt, %s", list, link.Extra["hns-endpoint"])
		}
		if err := l.Check(t.Context(), podnettest.RecordOf(req, link)); err != nil {
			t.Error(err)
		}
	})
}

// A DEL that overtakes an ADD leaves nothing, whenever HNS answers.
func TestCancelledLinkLeavesNothing(t *testing.T) {
	for _, op := range []windows.Op{windows.OpList, windows.OpCreateEndpoint, windows.OpAttach} {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hns := node()
				l := newLinker(t, hns)
				hns.Set(op, hnstest.Fault{Delay: 3 * time.Second})
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(podnet.ErrOvertaken) })
				if _, err := l.Link(ctx, request(hns, 1)); !errors.Is(err, podnet.ErrOvertaken) {
					t.Errorf("%v, want %v", err, podnet.ErrOvertaken)
				}
				time.Sleep(time.Minute)
				if left := names(hns); len(left) != 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		})
	}
}

// Many callers that want the whole list share one.
func TestWholeListsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		hns.Set(windows.OpList, hnstest.Fault{Delay: time.Second})
		var group sync.WaitGroup
		for n := range 50 {
			req := request(hns, n)
			group.Go(func() {
				if _, err := l.Link(t.Context(), req); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		// HN-3: the network is looked up once; 49 ADDs waited for that and share a list.
		if n := count(hns, windows.OpList); n > 3 {
			t.Errorf("50 ADDs listed %d times: %q", n, slices.Compact(hns.Calls()))
		}
	})
}

// Two DELs that wait for their turn together are one delete when it comes.
func TestDeletesThatWaitedTogetherAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		var deletes sync.WaitGroup
		hns.Set(windows.OpDeleteEndpoint, hnstest.Fault{Delay: 5 * time.Second})
		for n := range 5 {
			_, iface := mustLink(t, l, request(hns, n))
			unlink := func() {
				if err := l.Unlink(t.Context(), iface); err != nil {
					t.Error(err)
				}
			}
			deletes.Go(unlink)
			synctest.Wait() // four are under way, the fifth waits
			if n == 4 {
				deletes.Go(unlink)
			}
		}
		deletes.Wait()
		if n := count(hns, windows.OpDeleteEndpoint); n != 5 {
			t.Errorf("%d deletes of 5 endpoints", n)
		}
	})
}

// What a delete that hangs will take away is not adopted.
func TestEndpointThatIsBeingDeletedIsNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		req := request(hns, 1)
		hns.Set(windows.OpAttach, hnstest.Fault{Err: busy, Times: 1})
		release := hns.HangUp(windows.OpDeleteEndpoint)
		if _, err := l.Link(t.Context(), req); !errors.Is(err, busy) || !errors.Is(err, podnet.ErrTryAgain) {
			t.Errorf("%v; want both why it failed and that its endpoint is not gone", err)
		}
		if _, err := l.Link(t.Context(), req); !errors.Is(err, podnet.ErrTryAgain) {
			t.Errorf("%v, want %v", err, podnet.ErrTryAgain)
		}
		release()
		synctest.Wait()
		_, iface := mustLink(t, l, req)
		if err := l.Check(t.Context(), iface); err != nil {
			t.Error(err)
		}
		if n := count(hns, windows.OpDeleteEndpoint); n != 1 {
			t.Errorf("%d deletes", n)
		}
	})
}
