package async_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// gated lets only some ports be settled, and records when each was.
type gated struct {
	mu      sync.Mutex
	never   map[string]bool
	settled map[string]time.Time
	notes   map[string]int
	busy    map[string]bool // ports that a worker has at this moment
	twice   []string
	slow    time.Duration
}

func newGated() *gated {
	return &gated{never: map[string]bool{}, settled: map[string]time.Time{}, notes: map[string]int{}, busy: map[string]bool{}}
}

func (g *gated) Sync(_ context.Context, keys []podnet.PortKey) []error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range keys {
		if g.busy[k.Name] {
			g.twice = append(g.twice, k.Name)
		}
		g.busy[k.Name] = true
	}
	g.mu.Unlock()
	time.Sleep(g.slow)
	g.mu.Lock()
	errs := make([]error, len(keys))
	for i, k := range keys {
		delete(g.busy, k.Name)
		if g.never[k.Name] {
			errs[i] = fmt.Errorf("%s: %w", k.Name, podnet.ErrNoNumber)
		} else if g.settled[k.Name].IsZero() {
			g.settled[k.Name] = time.Now()
		}
	}
	return errs
}

func (g *gated) Late(context.Context, podnet.PortKey, error) {}

// Note implements podnet.Noter.
func (g *gated) Note(key podnet.PortKey, _ error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes[key.Name]++
}

func (g *gated) at(name string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settled[name]
}

// Hundreds of Pods that never come do not delay one that does, for hours.
func TestPodsThatNeverComeDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(names)
		r, err := async.New(async.Config{Watches: []async.Watch{events}})
		if err != nil {
			t.Fatal(err)
		}
		g := newGated()
		g.slow = time.Millisecond
		stop := start(func(ctx context.Context) error { return r.Run(ctx, g) })
		defer stop()
		for i := range 300 {
			g.mu.Lock()
			g.never[key(i).Name] = true
			g.mu.Unlock()
			begin(t, r, key(i))
		}
		var worst time.Duration
		for i := 300; i < 315; i++ {
			time.Sleep(37 * time.Second)
			begun := time.Now()
			begin(t, r, key(i))
			time.Sleep(time.Second)
			worst = max(worst, g.at(key(i).Name).Sub(begun))
		}
		if worst > 20*time.Millisecond || worst <= 0 {
			t.Errorf("a Pod whose port is there waited %v among 300 that never come", worst)
		}
		if r.Waiting() != 300 {
			t.Errorf("%d wait, want 300", r.Waiting())
		}
		if g.notes[key(7).Name] < 100 {
			t.Errorf("%d attempts told in ten minutes", g.notes[key(7).Name])
		}
	})
}

// A listing of host interfaces that hangs holds up those that need it, and
// nobody who is past it.
func TestAHungStepDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(names)
		var mu sync.Mutex
		hang := false
		r, err := async.New(async.Config{Watches: []async.Watch{events}, Prepare: func(ctx context.Context, keys []podnet.PortKey) []error {
			mu.Lock()
			stuck := hang
			mu.Unlock()
			errs := make([]error, len(keys))
			if stuck {
				<-ctx.Done()
				for i := range errs {
					errs[i] = fmt.Errorf("list host interfaces: %w", context.Cause(ctx))
				}
			}
			return errs
		}})
		if err != nil {
			t.Fatal(err)
		}
		s := &sink{}
		s.setFail(podnet.ErrNoNumber)
		stop := start(func(ctx context.Context) error { return r.Run(ctx, s) })
		defer stop()
		begin(t, r, key(1)) // passes the step and waits for its number
		synctest.Wait()
		mu.Lock()
		hang = true
		mu.Unlock()
		for i := 2; i < 40; i++ {
			begin(t, r, key(i))
			time.Sleep(50 * time.Millisecond)
		}
		s.seen()
		s.setFail(nil)
		events <- []string{"port1"}
		synctest.Wait()
		if syncs, _ := s.seen(); len(syncs) != 1 || syncs[0] != key(1) {
			t.Errorf("settled %v, want port1", syncs)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, late := s.seen(); len(late) == 0 || !strings.Contains(late[0], "no answer in 10s") {
			t.Errorf("late %q, want what hangs", late)
		}
		mu.Lock()
		hang = false
		mu.Unlock()
		time.Sleep(16 * time.Second)
		synctest.Wait()
		if r.Waiting() != 0 {
			t.Errorf("%d wait after the step recovered", r.Waiting())
		}
	})
}

// Events, retries and promises of one port never meet in two workers.
func TestOneWorkerPerPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(names)
		r, err := async.New(async.Config{Watches: []async.Watch{events}})
		if err != nil {
			t.Fatal(err)
		}
		g := newGated()
		g.slow = 7 * time.Millisecond
		g.never["port1"], g.never["port2"] = true, true
		stop := start(func(ctx context.Context) error { return r.Run(ctx, g) })
		defer stop()
		for i := range 500 {
			switch i % 5 {
			case 0:
				begin(t, r, key(1))
			case 1:
				r.Cancel(key(1))
			}
			events <- []string{"port1", "port2"}
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.twice) > 0 {
			t.Errorf("%d times two workers had one port: %v", len(g.twice), g.twice[0])
		}
	})
}
