package linux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// ports is a PortWaiter whose numbers a test sets.
type ports struct {
	mu      sync.Mutex
	numbers map[podnet.PortKey]uint32
	errs    map[podnet.PortKey]error
	changed chan struct{}
}

func newPorts() *ports {
	return &ports{numbers: map[podnet.PortKey]uint32{}, errs: map[podnet.PortKey]error{}, changed: make(chan struct{})}
}

func (p *ports) set(key podnet.PortKey, n uint32, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[key], p.errs[key] = n, err
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *ports) WaitOFPort(ctx context.Context, key podnet.PortKey) (uint32, error) {
	for {
		p.mu.Lock()
		n, err, changed := p.numbers[key], p.errs[key], p.changed
		p.mu.Unlock()
		if n != 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("port %s: %w: %w", key.Name, podnet.ErrNoNumber, context.Cause(ctx))
		}
	}
}

// names is an async.Watch that a test writes to. Sending fails the test when nobody reads.
type names chan []string

func (n names) Next(ctx context.Context) ([]string, error) {
	select {
	case s, ok := <-n:
		if !ok {
			return nil, errors.New("watch is closed")
		}
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// sink records what it is told, with the moment.
type sink struct {
	start time.Time
	sync  func(podnet.PortKey) error

	mu    sync.Mutex
	calls []string
}

func (s *sink) Sync(_ context.Context, keys []podnet.PortKey) []error {
	s.mu.Lock()
	for _, k := range keys {
		s.calls = append(s.calls, fmt.Sprintf("%v %s/%s", time.Since(s.start), k.Name, k.Gen))
	}
	s.mu.Unlock()
	errs := make([]error, len(keys))
	for i, k := range keys {
		if s.sync != nil {
			errs[i] = s.sync(k)
		}
	}
	return errs
}

func (s *sink) Late(context.Context, podnet.PortKey, error) { panic("nothing is late on Linux") }

func (s *sink) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	slices.Sort(calls)
	return calls
}

func TestBeginWaitsForTheNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorts()
		r := NewReadiness(ReadinessConfig{Ports: p})
		key := podnet.PortKey{Name: "pod1", Gen: "g1"}
		time.AfterFunc(40*time.Second, func() { p.set(key, 7, nil) })
		start := time.Now()
		n, ok, err := r.Begin(t.Context(), key)
		if n != 7 || !ok || err != nil || time.Since(start) != 40*time.Second {
			t.Errorf("Begin: %d, %v, %v after %v", n, ok, err, time.Since(start))
		}
	})
}

// A Begin that waited in vain says how long, what ended it and what was seen (OF-22).
func TestBeginExplainsItsFailure(t *testing.T) {
	key := podnet.PortKey{Name: "pod1", Gen: "g1"}
	described := func(string) string { return "number 4, LINK_DOWN" }
	overtaken := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(fmt.Errorf("DEL came: %w", podnet.ErrOvertaken)) })
		return ctx, func() { cancel(nil) }
	}
	tests := []struct {
		name  string
		cfg   ReadinessConfig
		port  error // what Open vSwitch says after a second
		end   func(context.Context) (context.Context, context.CancelFunc)
		after time.Duration
		is    error
		want  []string
	}{
		{"deadline of the caller", ReadinessConfig{}, nil, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 35*time.Second)
		}, 35 * time.Second, context.DeadlineExceeded, []string{"pod1", "35s", "deadline", "told nothing"}},
		{"deadline of the configuration", ReadinessConfig{Wait: 8 * time.Second, Describe: described}, nil, nil,
			8 * time.Second, podnet.ErrNoNumber, []string{"pod1", "configured wait of 8s", "last told: number 4, LINK_DOWN"}},
		{"overtaken", ReadinessConfig{Wait: time.Minute}, nil, overtaken, time.Second, podnet.ErrOvertaken, []string{"DEL came"}},
		{"device missing", ReadinessConfig{Describe: func(string) string { return "" }},
			&podnet.PortError{Name: "pod1", OFPort: -1, Text: "could not open network device pod1 (No such device)"}, nil,
			time.Second, nil, []string{"ofport -1", "could not open network device pod1 (No such device)", "told nothing", "ovs-vswitchd's log"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPorts()
				tt.cfg.Ports = p
				if tt.port != nil {
					time.AfterFunc(time.Second, func() { p.set(key, 0, tt.port) })
				}
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tt.end != nil {
					ctx, cancel = tt.end(ctx)
				}
				defer cancel()
				start := time.Now()
				n, ok, err := NewReadiness(tt.cfg).Begin(ctx, key)
				if n != 0 || ok || time.Since(start) != tt.after {
					t.Errorf("Begin: %d, %v after %v", n, ok, time.Since(start))
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %v does not wrap %v", err, tt.is)
				}
				wantText(t, err, tt.want...)
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("error of several lines: %q", err)
				}
				if port := (*podnet.PortError)(nil); errors.As(tt.port, &port) && !errors.As(err, &port) {
					t.Errorf("error %v carries no PortError", err)
				}
			})
		})
	}
}

// run runs r until the function it returns is called.
func run(t *testing.T, r *Readiness, s podnet.PortSink) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, s) }()
	return func() error { cancel(); return <-done }
}

func TestRunReportsEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, of, db := newPorts(), make(names), make(names)
		r := NewReadiness(ReadinessConfig{Ports: p, Watches: []async.Watch{of, db}})
		s := &sink{start: time.Now()}
		key := podnet.PortKey{Name: "pod1", Gen: "g1"}
		p.set(key, 1, nil)
		if _, _, err := r.Begin(t.Context(), key); err != nil { // before Run
			t.Fatal(err)
		}
		stop := run(t, r, s)
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, s.take()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		expect("at the start")
		of <- []string{"pod1", "pod2"}
		expect("from the OpenFlow watch", "0s pod1/g1", "0s pod2/")
		db <- []string{"pod2"}
		expect("from the OVSDB watch", "0s pod2/")
		r.Cancel(podnet.PortKey{Name: "pod1", Gen: "g0"}) // a late call for an earlier life
		of <- []string{"pod1"}
		expect("after a late Cancel", "0s pod1/g1")
		r.Cancel(key)
		r.Cancel(key)
		of <- []string{"pod1"}
		expect("after Cancel", "0s pod1/")
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// A port whose Sync fails comes again, later and later, for ever, and with the
// Gen of the day; its neighbours do not wait for it.
func TestRunRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, of := newPorts(), make(names)
		r := NewReadiness(ReadinessConfig{Ports: p, Watches: []async.Watch{of}, Queue: async.QueueConfig{MinRetry: time.Second, MaxRetry: 4 * time.Second}})
		var broken atomic.Bool
		broken.Store(true)
		s := &sink{start: time.Now(), sync: func(k podnet.PortKey) error {
			if k.Name == "bad" && broken.Load() {
				return errors.New("not now")
			}
			return nil
		}}
		stop := run(t, r, s)
		of <- []string{"bad", "good"}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"0s bad/", "0s good/", "11s bad/", "1s bad/", "3s bad/", "7s bad/"}, s.take()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		key := podnet.PortKey{Name: "bad", Gen: "second life"}
		p.set(key, 3, nil)
		if _, _, err := r.Begin(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		broken.Store(false)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"15s bad/second life"}, s.take()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// A sink that hangs never holds up the watches: 10000 changes are taken while
// every worker is stuck, and each port comes once afterwards.
func TestRunNeverBlocksTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := make(names)
		r := NewReadiness(ReadinessConfig{Ports: newPorts(), Watches: []async.Watch{of}})
		hang := make(chan struct{})
		s := &sink{start: time.Now(), sync: func(podnet.PortKey) error { <-hang; return nil }}
		stop := run(t, r, s)
		for i := range 10 {
			of <- []string{fmt.Sprint("stuck", i)}
			synctest.Wait()
		}
		s.take()
		for i := range 10000 {
			of <- []string{fmt.Sprint("pod", i%100)}
		}
		close(hang)
		synctest.Wait()
		seen := map[string]int{}
		for _, c := range s.take() {
			seen[c]++
		}
		for i := range 100 {
			if n := seen[fmt.Sprintf("0s pod%d/", i)]; n < 1 || n > 2 {
				t.Errorf("pod%d came %d times", i, n)
			}
		}
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunEndsWithItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of, db := make(names), make(names)
		r := NewReadiness(ReadinessConfig{Ports: newPorts(), Watches: []async.Watch{of, db}})
		done := make(chan error)
		go func() { done <- r.Run(t.Context(), &sink{}) }()
		close(db)
		wantText(t, <-done, "port watch ended", "watch is closed")
	})
}
