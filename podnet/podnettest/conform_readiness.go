package podnettest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// ReadinessUnderTest is a PortReadiness with the means to make things happen
// to ports. It is made anew for every test.
type ReadinessUnderTest struct {
	Readiness podnet.PortReadiness
	// Waits: Begin waits for the number; else it promises.
	Waits bool
	// Create makes a port of that name without a number and returns its key.
	Create func(t *testing.T, name string) podnet.PortKey
	// Number gives the port a number, or another one.
	Number func(t *testing.T, name string, ofport uint32)
	// Delete removes the port.
	Delete func(t *testing.T, name string)
	// Late is after how long an asynchronous backend calls PortSink.Late; 0 skips that test.
	Late time.Duration
}

// conformLimit is how long a conformance test waits for something that should
// come at once.
const conformLimit = 15 * time.Second

// TestReadiness runs the tests that every PortReadiness has to pass.
func TestReadiness(t *testing.T, newFn func(t *testing.T) ReadinessUnderTest) {
	for _, test := range []struct {
		name string
		fn   func(*testing.T, ReadinessUnderTest)
	}{
		{"begin before run", beginBeforeRun},
		{"begin ends with its context", beginEndsWithContext},
		{"number changes of every port are reported", reportsEveryPort},
		{"a failed sync is tried again", retries},
		{"cancel never waits and silences", cancels},
		{"a second life of a name is another port", secondLife},
		{"run ends with its context", runEnds},
		{"late is told", tellsLate},
	} {
		t.Run(test.name, func(t *testing.T) { test.fn(t, newFn(t)) })
	}
}

// recordingSink is a PortSink that tests look into.
type recordingSink struct {
	mu      sync.Mutex
	synced  []podnet.PortKey
	late    []podnet.PortKey
	failing int           // how many more Syncs fail
	hang    chan struct{} // Sync waits for it while not nil
	changed chan struct{}
}

func newRecordingSink() *recordingSink { return &recordingSink{changed: make(chan struct{})} }

func (s *recordingSink) Sync(ctx context.Context, keys []podnet.PortKey) []error {
	s.mu.Lock()
	s.synced = append(s.synced, keys...)
	errs := make([]error, len(keys))
	if s.failing > 0 {
		s.failing--
		for i := range errs {
			errs[i] = errors.New("podnettest: not now")
		}
	}
	hang := s.hang
	s.notify()
	s.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
		}
	}
	return errs
}

func (s *recordingSink) Late(_ context.Context, key podnet.PortKey, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, key)
	s.notify()
}

func (s *recordingSink) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits for cond, which is called with the sink locked.
func (s *recordingSink) until(t *testing.T, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		ok, changed := cond(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// count returns how often a port of that name was synced; gen "" counts every life.
func (s *recordingSink) count(name string) int {
	n := 0
	for _, k := range s.synced {
		if k.Name == name {
			n++
		}
	}
	return n
}

// runReadiness runs r until the returned function is called.
func runReadiness(t *testing.T, r podnet.PortReadiness, sink podnet.PortSink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, sink) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(conformLimit):
			t.Errorf("Run did not return within %v of its context's end", conformLimit)
		}
	})
	t.Cleanup(stop)
	return stop
}

// beginIn calls Begin in the background: it may wait.
func beginIn(ctx context.Context, u ReadinessUnderTest, key podnet.PortKey) <-chan beginResult {
	result := make(chan beginResult, 1)
	go func() {
		ofport, ok, err := u.Readiness.Begin(ctx, key)
		result <- beginResult{ofport, ok, err}
	}()
	return result
}

type beginResult struct {
	ofport uint32
	ok     bool
	err    error
}

func await(t *testing.T, what string, result <-chan beginResult) beginResult {
	t.Helper()
	select {
	case r := <-result:
		return r
	case <-time.After(conformLimit):
		t.Fatalf("%s did not return within %v", what, conformLimit)
		return beginResult{}
	}
}

// beginPort begins key, gives it number ofport and checks the answer.
func beginPort(t *testing.T, u ReadinessUnderTest, key podnet.PortKey, ofport uint32) {
	t.Helper()
	result := beginIn(t.Context(), u, key)
	if u.Waits {
		u.Number(t, key.Name, ofport)
		if r := await(t, "Begin", result); r.err != nil || !r.ok || r.ofport != ofport {
			t.Fatalf("Begin: %+v, want number %d", r, ofport)
		}
		return
	}
	if r := await(t, "Begin", result); r.err != nil || r.ok {
		t.Fatalf("Begin: %+v, want a promise", r)
	}
	u.Number(t, key.Name, ofport)
}

func beginBeforeRun(t *testing.T, u ReadinessUnderTest) {
	key := u.Create(t, "cfm1")
	beginPort(t, u, key, 5)
	sink := newRecordingSink()
	runReadiness(t, u.Readiness, sink)
	if !u.Waits {
		sink.until(t, "the promise is kept", conformLimit, func() bool { return slices.Contains(sink.synced, key) })
	}
}

func beginEndsWithContext(t *testing.T, u ReadinessUnderTest) {
	key := u.Create(t, "cfm1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := await(t, "Begin with an ended context", beginIn(ctx, u, key)); r.err == nil {
		t.Errorf("Begin with an ended context: %+v, want an error", r)
	}
	if !u.Waits {
		return
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	result := beginIn(ctx, u, key)
	cancel()
	if r := await(t, "Begin", result); r.err == nil || r.ok {
		t.Errorf("Begin whose context ended: %+v, want an error", r)
	}
}

func reportsEveryPort(t *testing.T, u ReadinessUnderTest) {
	sink := newRecordingSink()
	runReadiness(t, u.Readiness, sink)
	u.Create(t, "cfm1") // nobody begins this one: it was there before the process
	u.Number(t, "cfm1", 5)
	sink.until(t, "the first number is reported", conformLimit, func() bool { return sink.count("cfm1") > 0 })
	sink.mu.Lock()
	sink.synced = nil
	sink.mu.Unlock()
	u.Number(t, "cfm1", 6)
	sink.until(t, "the change is reported", conformLimit, func() bool { return sink.count("cfm1") > 0 })
	sink.mu.Lock()
	sink.synced = nil
	sink.mu.Unlock()
	u.Delete(t, "cfm1")
	sink.until(t, "the loss is reported", conformLimit, func() bool { return sink.count("cfm1") > 0 })
}

func retries(t *testing.T, u ReadinessUnderTest) {
	sink := newRecordingSink()
	sink.failing = 3
	runReadiness(t, u.Readiness, sink)
	u.Create(t, "cfm1")
	u.Number(t, "cfm1", 5)
	sink.until(t, "Sync is called again after it failed", conformLimit, func() bool { return sink.failing == 0 && sink.count("cfm1") > 3 })
}

func cancels(t *testing.T, u ReadinessUnderTest) {
	sink := newRecordingSink()
	sink.hang = make(chan struct{})
	runReadiness(t, u.Readiness, sink)
	key := u.Create(t, "cfm1")
	beginPort(t, u, key, 5)
	sink.until(t, "the sink is called", conformLimit, func() bool { return sink.count("cfm1") > 0 })
	cancelled := make(chan struct{})
	go func() {
		u.Readiness.Cancel(key) // while the sink hangs
		u.Readiness.Cancel(key) // twice is harmless
		close(cancelled)
	}()
	select {
	case <-cancelled:
	case <-time.After(conformLimit):
		t.Error("Cancel waits for a sink that hangs")
	}
	close(sink.hang)
}

func secondLife(t *testing.T, u ReadinessUnderTest) {
	first := u.Create(t, "cfm1")
	beginPort(t, u, first, 5)
	u.Readiness.Cancel(first)
	u.Delete(t, "cfm1")
	second := u.Create(t, "cfm1")
	if second.Gen == first.Gen {
		t.Fatal("the second life has the Gen of the first")
	}
	beginPort(t, u, second, 6)
	u.Readiness.Cancel(first) // late; must not touch the second
	sink := newRecordingSink()
	runReadiness(t, u.Readiness, sink)
	sink.until(t, "the second life is reported", conformLimit, func() bool { return sink.count("cfm1") > 0 })
	sink.mu.Lock()
	defer sink.mu.Unlock()
	if slices.Contains(sink.synced, first) {
		t.Errorf("the first life was reported after its Cancel: %v", sink.synced)
	}
}

func runEnds(t *testing.T, u ReadinessUnderTest) {
	sink := newRecordingSink()
	stop := runReadiness(t, u.Readiness, sink)
	key := u.Create(t, "cfm1")
	if !u.Waits {
		await(t, "Begin", beginIn(t.Context(), u, key))
	}
	stop() // fails when Run does not return
}

func tellsLate(t *testing.T, u ReadinessUnderTest) {
	if u.Waits || u.Late == 0 {
		return // Begin's error tells
	}
	sink := newRecordingSink()
	sink.failing = 1 << 30
	runReadiness(t, u.Readiness, sink)
	key := u.Create(t, "cfm1")
	await(t, "Begin", beginIn(t.Context(), u, key))
	sink.until(t, "Late is called", u.Late+conformLimit, func() bool { return slices.Contains(sink.late, key) })
}
