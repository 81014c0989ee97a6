package async_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// names is a Watch fed by a test.
type names chan []string

func (n names) Next(ctx context.Context) ([]string, error) {
	select {
	case list, ok := <-n:
		if !ok {
			return nil, errors.New("the session is closed for good")
		}
		return list, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sink records what it is told.
type sink struct {
	mu    sync.Mutex
	fail  error
	syncs []podnet.PortKey
	late  []string
	block chan struct{}
}

func (s *sink) Sync(_ context.Context, keys []podnet.PortKey) []error {
	s.mu.Lock()
	block, fail := s.block, s.fail
	s.syncs = append(s.syncs, keys...)
	s.mu.Unlock()
	if block != nil {
		<-block
	}
	errs := make([]error, len(keys))
	for i := range errs {
		errs[i] = fail
	}
	return errs
}

func (s *sink) Late(_ context.Context, key podnet.PortKey, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, fmt.Sprint(key.Name, ": ", cause))
}

func (s *sink) setFail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *sink) seen() (syncs []podnet.PortKey, late []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	syncs, late = s.syncs, s.late
	s.syncs, s.late = nil, nil
	return syncs, late
}

// bubble runs a Readiness in a synctest bubble.
func bubble(t *testing.T, cfg async.Config, fn func(t *testing.T, r *async.Readiness, s *sink, events names)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		events := make(names)
		cfg.Watches = []async.Watch{events}
		r, err := async.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := &sink{}
		stop := start(func(ctx context.Context) error { return r.Run(ctx, s) })
		fn(t, r, s, events)
		stop()
	})
}

func begin(t *testing.T, r *async.Readiness, key podnet.PortKey) {
	t.Helper()
	if ofport, ok, err := r.Begin(t.Context(), key); ofport != 0 || ok || err != nil {
		t.Errorf("Begin: %d %v %v, want a promise", ofport, ok, err)
	}
}

func TestPromiseIsTriedUntilItIsKept(t *testing.T) {
	bubble(t, async.Config{}, func(t *testing.T, r *async.Readiness, s *sink, events names) {
		s.setFail(fmt.Errorf("port1: %w", podnet.ErrNoNumber))
		begin(t, r, key(1))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if syncs, late := s.seen(); len(syncs) < 8 || len(late) != 0 {
			t.Errorf("%d attempts, late %q; want several and nobody told", len(syncs), late)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, late := s.seen(); len(late) != 1 || !strings.Contains(late[0], "port1: port1: no OpenFlow port number yet") {
			t.Errorf("late %q at 30 s, want it with its cause", late)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if syncs, _ := s.seen(); len(syncs) < 700 {
			t.Errorf("%d attempts in an hour, want one every 5 s without end", len(syncs))
		}
		// An event is quicker than the next retry.
		s.setFail(nil)
		events <- []string{"port1"}
		synctest.Wait()
		if syncs, _ := s.seen(); len(syncs) != 1 || syncs[0] != key(1) || r.Waiting() != 0 {
			t.Errorf("after the event: %v, %d wait", syncs, r.Waiting())
		}
		time.Sleep(time.Hour)
		if syncs, late := s.seen(); len(syncs) != 0 || len(late) != 0 {
			t.Errorf("a promise that was kept goes on: %v %q", syncs, late)
		}
	})
}

// The number of a port nobody asked about changes.
func TestEveryNameIsPassedOn(t *testing.T) {
	bubble(t, async.Config{}, func(t *testing.T, _ *async.Readiness, s *sink, events names) {
		s.setFail(podnet.ErrBusy)
		events <- []string{"a", "b"}
		time.Sleep(time.Minute)
		s.setFail(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		syncs, late := s.seen()
		count := map[string]int{}
		for _, k := range syncs {
			if k.Gen != "" {
				t.Errorf("key %+v, want whatever life the name has", k)
			}
			count[k.Name]++
		}
		if count["a"] < 10 || count["b"] < 10 || len(late) != 0 {
			t.Errorf("attempts %v, late %q", count, late)
		}
	})
}

func TestCancel(t *testing.T) {
	bubble(t, async.Config{}, func(t *testing.T, r *async.Readiness, s *sink, _ names) {
		s.mu.Lock()
		s.block = make(chan struct{})
		s.mu.Unlock()
		begin(t, r, key(1))
		synctest.Wait() // the sink hangs in Sync now
		r.Cancel(podnet.PortKey{Name: "port1", Gen: "another life"})
		if r.Waiting() != 1 {
			t.Error("another life's promise was cancelled")
		}
		r.Cancel(key(1)) // returns although the sink hangs
		if r.Waiting() != 0 {
			t.Error("the promise stands")
		}
		s.mu.Lock()
		s.fail = podnet.ErrNoNumber
		close(s.block)
		s.block = nil
		s.mu.Unlock()
		s.seen()
		time.Sleep(time.Hour)
		if syncs, late := s.seen(); len(syncs) != 0 || len(late) != 0 {
			t.Errorf("after Cancel: %v %q", syncs, late)
		}
	})
}

func TestAcceptance(t *testing.T) {
	var mu sync.Mutex
	state, listed := async.PortState{Number: 7}, false
	set := func(s async.PortState, l bool) {
		mu.Lock()
		defer mu.Unlock()
		state, listed = s, l
	}
	ports := func(string) (async.PortState, bool) {
		mu.Lock()
		defer mu.Unlock()
		return state, listed
	}
	if _, err := async.New(async.Config{Accept: async.AcceptLive}); err == nil {
		t.Error("AcceptLive without Ports")
	}
	for _, test := range []struct {
		accept             async.Accept
		absent, down, live bool // accepted?
	}{
		{async.AcceptNumber, true, true, true},
		{async.AcceptListed, false, true, true},
		{async.AcceptLive, false, false, true},
	} {
		for _, c := range []struct {
			state  async.PortState
			listed bool
			want   bool
		}{
			{async.PortState{}, false, test.absent},
			{async.PortState{Number: 7}, true, test.down},
			{async.PortState{Number: 7, Live: true}, true, test.live},
		} {
			set(c.state, c.listed)
			bubble(t, async.Config{Accept: test.accept, Ports: ports}, func(t *testing.T, r *async.Readiness, s *sink, events names) {
				// The watch may tell before Begin promises; the rule holds all the same.
				s.setFail(podnet.ErrBusy)
				events <- []string{"port1"}
				synctest.Wait()
				begin(t, r, key(1))
				s.setFail(nil)
				s.seen()
				time.Sleep(31 * time.Second)
				synctest.Wait()
				syncs, late := s.seen()
				if got := len(syncs) > 0; got != c.want || (len(late) == 0) != c.want {
					t.Errorf("rule %d, state %+v listed %v: accepted %v, late %q", test.accept, c.state, c.listed, got, late)
				}
				if !c.want {
					set(async.PortState{Number: 7, Live: true}, true)
					time.Sleep(5 * time.Second)
					synctest.Wait()
					if r.Waiting() != 0 {
						t.Error("not accepted once it is live")
					}
				}
			})
		}
	}
}

// The step before the number is called for all that wait at once, and its
// error is the cause.
func TestPrepare(t *testing.T) {
	var mu sync.Mutex
	var calls [][]podnet.PortKey
	missing := errors.New("the host interface is not there")
	fail := missing
	cfg := async.Config{Prepare: func(_ context.Context, keys []podnet.PortKey) []error {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, keys)
		errs := make([]error, len(keys))
		for i := range errs {
			errs[i] = fail
		}
		return errs
	}}
	bubble(t, cfg, func(t *testing.T, r *async.Readiness, s *sink, _ names) {
		for i := range 60 {
			begin(t, r, key(i))
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		syncs, late := s.seen()
		if len(syncs) != 0 || len(late) != 60 || !strings.Contains(late[0], missing.Error()) {
			t.Errorf("%d syncs, %d late: %q", len(syncs), len(late), late)
		}
		mu.Lock()
		if len(calls) > 60 {
			t.Errorf("%d calls for 60 ports in 30 s; those that wait should share them", len(calls))
		}
		fail = nil
		mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if syncs, _ := s.seen(); len(syncs) != 60 || r.Waiting() != 0 {
			t.Errorf("%d syncs after the step succeeds, %d wait", len(syncs), r.Waiting())
		}
	})
}

// A busy lock explains nothing to the Pod's owner.
func TestBusyDoesNotHideTheCause(t *testing.T) {
	bubble(t, async.Config{}, func(t *testing.T, r *async.Readiness, s *sink, _ names) {
		s.setFail(&podnet.PortError{Name: "port1", OFPort: -1, Text: "File exists"})
		begin(t, r, key(1))
		time.Sleep(20 * time.Second)
		s.setFail(fmt.Errorf("container: %w", podnet.ErrBusy))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if _, late := s.seen(); len(late) == 0 || !strings.Contains(late[0], "File exists") {
			t.Errorf("late %q", late)
		}
	})
}

func TestRunEndsWithItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(names)
		r, err := async.New(async.Config{Watches: []async.Watch{events}})
		if err != nil {
			t.Fatal(err)
		}
		close(events)
		if err := r.Run(t.Context(), &sink{}); err == nil || !strings.Contains(err.Error(), "closed for good") {
			t.Errorf("Run: %v", err)
		}
	})
}

// A row's name may be reported before Begin. The attempt that this has begun
// must not put flows in by the bare name, for which there is no rule.
func TestPromiseMadeDuringAnAttempt(t *testing.T) {
	var promise func()
	cfg := async.Config{
		Accept:  async.AcceptListed,
		Prepare: func(_ context.Context, keys []podnet.PortKey) []error { return make([]error, len(keys)) },
		Ports: func(string) (async.PortState, bool) {
			promise()
			return async.PortState{}, false
		},
	}
	bubble(t, cfg, func(t *testing.T, r *async.Readiness, s *sink, events names) {
		promise = sync.OnceFunc(func() { begin(t, r, key(1)) })
		events <- []string{key(1).Name}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if syncs, _ := s.seen(); len(syncs) > 0 {
			t.Errorf("synced %v, which the session does not list", syncs)
		}
	})
}
