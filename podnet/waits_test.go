package podnet_test

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
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// step is a step before the number that a test lets succeed or fail.
type step struct {
	mu  sync.Mutex
	err error
}

func (s *step) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *step) prepare(_ context.Context, keys []podnet.PortKey) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(keys))
	for i := range errs {
		errs[i] = s.err
	}
	return errs
}

// Waits says at every moment since when an interface waits and for what, long
// before anybody is told.
func TestWaitsNameTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		s := &step{err: fmt.Errorf("endpoint: %w", podnet.ErrNoEndpoint)}
		var mu sync.Mutex
		state, listed := async.PortState{Number: 7}, false
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{
			Prepare: s.prepare, Accept: async.AcceptLive,
			Ports: func(string) (async.PortState, bool) {
				mu.Lock()
				defer mu.Unlock()
				return state, listed
			},
		}))
		defer stop()
		begun := time.Now()
		iface := mustAdd(t, n, "c1")
		attempts := 0
		want := func(cause podnet.Cause, text string) {
			t.Helper()
			time.Sleep(6 * time.Second)
			synctest.Wait()
			waits := n.Waits()
			if len(waits) != 1 {
				t.Fatalf("waits %+v", waits)
			}
			got := waits[0]
			if got.Key != iface.Key || got.Port.Gen != iface.Gen || !got.Since.Equal(begun) || got.Cause != cause || !strings.Contains(got.Text, text) {
				t.Errorf("wait %+v, want %s since %v: %q", got, cause, begun, text)
			}
			if got.Attempts <= attempts {
				t.Errorf("%d attempts after %d", got.Attempts, attempts)
			}
			attempts = got.Attempts
		}
		want(podnet.CauseEndpoint, "no endpoint yet")
		s.set(fmt.Errorf("device: %w", podnet.ErrNoDevice))
		want(podnet.CauseDevice, "no such host interface")
		s.set(nil)
		want(podnet.CauseNumber, "does not list it")
		mu.Lock()
		listed = true
		mu.Unlock()
		want(podnet.CauseDown, "not live")
		if events := w.Events(); len(events) != 0 {
			t.Errorf("told after 24 s: %+v", events)
		}
		mu.Lock()
		state.Live = true
		mu.Unlock()
		w.Bridge.SetOFPort(iface.Name, -1, "Invalid argument")
		want(podnet.CauseError, "Invalid argument")
		w.Flows.Before("Install", func(context.Context) error { return errors.New("table 7 is full") })
		w.Bridge.SetOFPort(iface.Name, 7, "")
		want(podnet.CauseFlows, "table 7 is full")
		events := w.Events()
		if len(events) != 1 || events[0].Type != podnet.NetworkNotReady || events[0].Time.Sub(begun) != 30*time.Second {
			t.Errorf("events %+v, want one at 30 s", events)
		}
		w.Flows.Before("Install", nil)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		wantReady(t, w, n, "c1")
		if waits := n.Waits(); len(waits) != 0 {
			t.Errorf("a ready interface waits: %+v", waits)
		}
		// One that lost its port waits anew, and counts anew.
		begun, attempts = time.Now(), 0
		w.Bridge.SetOFPort(iface.Name, -1, "No such device")
		want(podnet.CauseError, "No such device")
		mustDelete(t, n, "c1")
		if waits := n.Waits(); len(waits) != 0 {
			t.Errorf("a deleted interface waits: %+v", waits)
		}
		wantNothingLeft(t, w, n)
	})
}

// A restart does not begin the wait anew: it began with the Add. One that is
// overdue gets a look before its Pod is told.
func TestRestartTakesUpTheWait(t *testing.T) {
	for _, test := range []struct {
		name   string
		before time.Duration // with the first process
		told   time.Duration // after the Add; 0: never
		number time.Duration // after the restart; 0: never
	}{
		{name: "not due yet", before: 10 * time.Second, told: 30 * time.Second},
		{name: "overdue", before: 10 * time.Minute, told: 10*time.Minute + 5*time.Second},
		{name: "overdue, and there at the first look", before: 10 * time.Minute, number: time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := podnettest.NewWorld()
				w.Bridge.Slow(true)
				begun := time.Now()
				cfg := w.AsyncConfig(t, async.Config{})
				cfg.Events = nil // what the first process tells is not the matter here
				n, stop := podnettest.Start(t, cfg)
				iface := mustAdd(t, n, "c1")
				time.Sleep(test.before)
				stop()
				n, stop = podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
				defer stop()
				if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
					t.Fatal(err)
				}
				if waits := n.Waits(); len(waits) != 1 || !waits[0].Since.Equal(begun) {
					t.Errorf("waits %+v, want since %v", waits, begun)
				}
				if test.number > 0 {
					time.Sleep(test.number)
					w.Bridge.SetOFPort(iface.Name, 5, "")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				var notReady []time.Duration
				for _, e := range w.Events() {
					if e.Type == podnet.NetworkNotReady {
						notReady = append(notReady, e.Time.Sub(begun))
					}
				}
				switch {
				case test.told == 0 && len(notReady) > 0:
					t.Errorf("told after %v", notReady)
				case test.told > 0 && (len(notReady) != 1 || notReady[0] < test.told || notReady[0] > test.told+5*time.Second):
					t.Errorf("told after %v, want %v", notReady, test.told)
				}
				if test.number > 0 {
					wantReady(t, w, n, "c1")
				}
			})
		})
	}
}

// A port that had flows once and has no number when the agent starts needs the
// step before the number again.
func TestRestartPreparesWhatLostItsNumber(t *testing.T) {
	for _, ofport := range []int32{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			w := podnettest.NewWorld()
			n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
			iface := mustAdd(t, n, "c1")
			time.Sleep(time.Second)
			wantReady(t, w, n, "c1")
			stop()
			w.Flows.Lose()
			w.Bridge.SetOFPort(iface.Name, ofport, "")
			s := &step{err: podnet.ErrNoDevice}
			n, stop = podnettest.Start(t, w.AsyncConfig(t, async.Config{Prepare: s.prepare}))
			defer stop()
			if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if waits := n.Waits(); len(waits) != 1 || waits[0].Cause != podnet.CauseDevice {
				t.Errorf("ofport %d: waits %+v, want for the device", ofport, waits)
			}
			s.set(nil)
			w.Bridge.SetOFPort(iface.Name, 9, "")
			time.Sleep(6 * time.Second)
			synctest.Wait()
			wantReady(t, w, n, "c1")
		})
	}
}

// An Add that hangs, in whatever step, holds no worker: others become ready at once.
func TestAHungAddHoldsNoWorker(t *testing.T) {
	for _, op := range []string{"Link", "AddPort", "SetExternalIDs"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := podnettest.NewWorld()
				w.Bridge.Slow(true)
				n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{Queue: async.QueueConfig{Workers: 1}}))
				defer stop()
				for i := range 50 {
					mustAdd(t, n, fmt.Sprint("c", i))
				}
				hang := func(ctx context.Context) error {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				if op == "Link" {
					w.Linker.Before(op, hang)
				} else {
					w.Bridge.Before(op, hang)
				}
				ctx, cancel := context.WithCancel(t.Context())
				hung := make(chan error, 1)
				go func() {
					_, err := n.Add(ctx, podnettest.NewRequest("hung"))
					hung <- err
				}()
				synctest.Wait()
				w.Linker.Before(op, nil)
				w.Bridge.Before(op, nil)
				begun := time.Now()
				w.Bridge.Slow(false) // every port gets its number, the hung one's too
				synctest.Wait()
				if took := time.Since(begun); took > 0 {
					t.Errorf("took %v", took)
				}
				for i := range 50 {
					wantReady(t, w, n, fmt.Sprint("c", i))
				}
				cancel()
				<-hung
			})
		})
	}
}

// The neighbours are told once flows are in, also when Add had returned before.
func TestAsyncAnnounces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		mustAdd(t, n, "c1")
		time.Sleep(time.Minute)
		announced := func() (count int) {
			for _, call := range w.Linker.Calls() {
				if strings.HasPrefix(call, "Announce") {
					count++
				}
			}
			return count
		}
		if announced() != 0 {
			t.Error("announced before the flows")
		}
		w.Bridge.Slow(false)
		synctest.Wait()
		if announced() != 1 {
			t.Errorf("announced %d times, want once", announced())
		}
		w.Bridge.SetOFPort(podnettest.HostName(keyOf("c1")), 99, "")
		synctest.Wait()
		wantReady(t, w, n, "c1")
		if announced() != 1 {
			t.Errorf("announced %d times after the number moved", announced())
		}
	})
}

// Whatever the order in which looks and reports of lateness meet, the last
// event of an interface is its last state.
func TestEventsKeepTheirOrder(t *testing.T) {
	w := podnettest.NewWorld()
	w.Bridge.Slow(true)
	q := podnet.NewEventQueue(0)
	cfg := w.AsyncConfig(t, async.Config{NotReadyAfter: time.Nanosecond, Queue: asyncQuick.Queue})
	cfg.Events, cfg.NotReadyAfter, cfg.NotReadyRepeat = q, time.Nanosecond, time.Nanosecond
	n := start(t, cfg)
	const pods = 40
	for i := range pods {
		mustAdd(t, n, fmt.Sprint("c", i))
	}
	var late sync.WaitGroup
	stop := make(chan struct{})
	late.Go(func() {
		for r := 0; ; r++ {
			select {
			case <-stop:
				return
			default:
				n.Late(t.Context(), podnet.PortKey{Name: podnettest.HostName(keyOf(fmt.Sprint("c", r%pods)))}, fmt.Errorf("cause %d", r))
			}
		}
	})
	w.Bridge.Slow(false)
	eventually(t, "all are ready", func() bool { return n.Waiting() == 0 })
	close(stop)
	late.Wait()
	for range pods {
		e, err := q.Next(t.Context())
		if err != nil || e.Type != podnet.NetworkReady {
			t.Errorf("last event %+v %v, want NetworkReady", e, err)
		}
	}
}
