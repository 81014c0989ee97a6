package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs fn in the bubble until stop is called.
func start(fn func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- fn(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			panic(err)
		}
	}
}

func key(n int) podnet.PortKey {
	return podnet.PortKey{Name: fmt.Sprint("port", n), Gen: fmt.Sprint("gen", n)}
}

// recorder is a sync function that keeps what it was called with.
type recorder struct {
	mu    sync.Mutex
	calls [][]podnet.PortKey
	at    []time.Duration
	begun time.Time
	fail  func(podnet.PortKey) error
	block chan struct{}
}

func (r *recorder) sync(ctx context.Context, keys []podnet.PortKey) []error {
	r.mu.Lock()
	r.calls = append(r.calls, keys)
	r.at = append(r.at, time.Since(r.begun))
	r.mu.Unlock()
	if r.block != nil {
		select {
		case <-r.block:
		case <-ctx.Done():
		}
	}
	errs := make([]error, len(keys))
	if r.fail != nil {
		for i, k := range keys {
			errs[i] = r.fail(k)
		}
	}
	return errs
}

func (r *recorder) count() (calls, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		keys += len(c)
	}
	return len(r.calls), keys
}

func TestQueueKeepsWhatCameBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := async.NewQueue(async.QueueConfig{})
		q.Add(key(1), key(2), key(1))
		q.AddAfter(key(3), time.Minute)
		q.AddAfter(key(3), time.Hour) // the earlier moment stands
		r := &recorder{begun: time.Now()}
		stop := start(func(ctx context.Context) error { return q.Run(ctx, r.sync) })
		synctest.Wait()
		if _, keys := r.count(); keys != 2 {
			t.Errorf("keys worked on at once: %d, want 2: %v", keys, r.calls)
		}
		time.Sleep(2 * time.Minute)
		if _, keys := r.count(); keys != 3 {
			t.Errorf("keys worked on after two minutes: %d, want 3: %v", keys, r.calls)
		}
		stop()
	})
}

func TestQueueJoinsWhatArrivesWhileWorkersAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := async.NewQueue(async.QueueConfig{Workers: 1, MaxBatch: 64})
		r := &recorder{begun: time.Now(), block: make(chan struct{})}
		stop := start(func(ctx context.Context) error { return q.Run(ctx, r.sync) })
		q.Add(key(0))
		synctest.Wait() // the only worker is busy now
		for n := range 100 {
			q.Add(key(n))
			q.Add(key(n))
		}
		close(r.block)
		synctest.Wait()
		// One call for the first, 99 others coalesced, key 0 once more.
		if calls, keys := r.count(); calls != 3 || keys != 101 {
			t.Errorf("%d calls with %d keys, want 3 with 101", calls, keys)
		}
		stop()
	})
}

func TestQueueBacksOff(t *testing.T) {
	portErr := &podnet.PortError{Name: "port1", OFPort: -1, Text: "could not open network device"}
	for _, test := range []struct {
		name  string
		err   error
		limit time.Duration
	}{
		{"ours", podnet.ErrBusy, 5 * time.Second},
		{"Open vSwitch refuses", fmt.Errorf("wrapped: %w", portErr), time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := async.NewQueue(async.QueueConfig{})
				r := &recorder{begun: time.Now(), fail: func(podnet.PortKey) error { return test.err }}
				stop := start(func(ctx context.Context) error { return q.Run(ctx, r.sync) })
				q.Add(key(1))
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				want := 25 * time.Millisecond
				for i := 1; i < len(r.at); i++ {
					if got := r.at[i] - r.at[i-1]; got != want {
						t.Fatalf("delay %d: %v, want %v", i, got, want)
					}
					want = min(2*want, test.limit)
				}
				if want != test.limit {
					t.Errorf("the delay grew to %v, want %v", want, test.limit)
				}
				// An event starts the delays anew.
				n := len(r.at)
				q.Add(key(1))
				time.Sleep(25 * time.Millisecond)
				synctest.Wait()
				if len(r.at) < n+2 {
					t.Errorf("no quick retry after an event")
				}
				stop()
			})
		})
	}
}

func TestQueueOneSlowBatchDoesNotHoldOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := async.NewQueue(async.QueueConfig{Workers: 2})
		done := make(chan podnet.PortKey, 10)
		stop := start(func(ctx context.Context) error {
			return q.Run(ctx, func(ctx context.Context, keys []podnet.PortKey) []error {
				for _, k := range keys {
					if k == key(0) {
						<-ctx.Done()
					}
					done <- k
				}
				return nil // no results stands for success of all
			})
		})
		q.Add(key(0))
		synctest.Wait()
		for n := 1; n < 5; n++ {
			q.Add(key(n))
		}
		synctest.Wait()
		if len(done) != 4 {
			t.Errorf("%d keys done beside the one that hangs, want 4", len(done))
		}
		stop()
	})
}

func TestQueueRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := async.NewQueue(async.QueueConfig{})
		for range 3 {
			r := &recorder{begun: time.Now(), fail: func(podnet.PortKey) error { return errors.New("no") }}
			stop := start(func(ctx context.Context) error { return q.Run(ctx, r.sync) })
			q.Add(key(1))
			synctest.Wait()
			stop()
			if _, keys := r.count(); keys == 0 {
				t.Error("a queue that runs again works on nothing")
			}
			q.Add(key(2)) // between two runs
		}
	})
}
