package windows

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

// guard is an HNS in front of another one whose calls may never return. A
// caller waits for at most limit, or until its ctx ends; the call goes on in a
// goroutine of its own. Of each operation at most max calls are under way, so
// that a HNS which hangs holds a bounded number of goroutines, whatever is asked.
type guard struct {
	hns   HNS
	limit time.Duration
	max   int
	// observe receives every call that returned; it may be nil.
	observe func(Call)
	slots   map[Op]chan struct{}

	// Whole lists are what many callers want at one moment and cost HNS one
	// call for each object.
	endpoints  *join.Joiner[Query, Objects]
	namespaces *join.Joiner[Query, Objects]

	mu      sync.Mutex
	running map[*running]struct{}
	joined  map[any]*flight          // deletes, attaches and detaches by what they are about
	creates map[string]chan struct{} // by endpoint name; closed when the create and its clean-up are over
}

// running is a call under way.
type running struct {
	op    Op
	what  string
	begun time.Time
	over  bool // it has returned
	left  bool // its caller has left before that
}

// flight is a call that several callers wait for.
type flight struct {
	begun time.Time
	done  chan struct{} // closed once err is set
	err   error
}

var _ HNS = (*guard)(nil)

func newGuard(hns HNS, limit time.Duration, max int, observe func(Call)) *guard {
	g := &guard{
		hns: hns, limit: limit, max: max, observe: observe,
		slots:   make(map[Op]chan struct{}),
		running: make(map[*running]struct{}),
		joined:  make(map[any]*flight),
		creates: make(map[string]chan struct{}),
	}
	for _, op := range ops {
		g.slots[op] = make(chan struct{}, g.share(op))
	}
	g.endpoints, g.namespaces = join.New(g.listOnce, 0), join.New(g.listOnce, 0)
	return g
}

// share is how many calls of op may be under way.
func (g *guard) share(op Op) int {
	if op == OpCreateNetwork {
		return 1 // two would make two networks of one name
	}
	return g.max
}

// Health reports how HNS answers.
func (g *guard) health() Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := Health{Running: len(g.running)}
	for r := range g.running {
		if age := time.Since(r.begun); age >= g.limit {
			h.Overdue++
			h.Oldest = max(h.Oldest, age)
		}
	}
	for _, op := range ops {
		if n, _ := g.overdue(op); n == g.share(op) {
			h.Stuck = append(h.Stuck, op)
		}
	}
	return h
}

// overdue counts the calls of op that have lasted too long. g.mu is held.
func (g *guard) overdue(op Op) (n int, oldest time.Duration) {
	for r := range g.running {
		if age := time.Since(r.begun); r.op == op && age >= g.limit {
			n++
			oldest = max(oldest, age)
		}
	}
	return n, oldest
}

// take waits for the right to make a call of op. As long as calls of op return
// it waits until ctx ends; when all are overdue there is nothing to wait for.
func (g *guard) take(ctx context.Context, op Op, what string) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case g.slots[op] <- struct{}{}:
			return nil
		default:
		}
		g.mu.Lock()
		n, oldest := g.overdue(op)
		g.mu.Unlock()
		if n == g.share(op) {
			return fmt.Errorf("%w: %s was not asked of HNS: %d such calls have not returned, the oldest for %s; restart HNS (`Restart-Service hns`) if this lasts",
				podnet.ErrTryAgain, what, n, oldest.Round(time.Second))
		}
		timer := time.NewTimer(g.limit)
		select {
		case g.slots[op] <- struct{}{}:
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (g *guard) release(op Op) { <-g.slots[op] }

func (g *guard) start(op Op, what string) *running {
	r := &running{op: op, what: what, begun: time.Now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[r] = struct{}{}
	return r
}

// returned notes that the call is over and tells whether its caller has left.
func (g *guard) returned(ctx context.Context, r *running, err error) (left bool) {
	g.mu.Lock()
	r.over, left = true, r.left
	delete(g.running, r)
	g.mu.Unlock()
	took := time.Since(r.begun)
	if g.observe != nil {
		g.observe(Call{Op: r.op, Duration: took, Err: err, Left: left})
	}
	if left {
		klog.FromContext(ctx).Info("HNS answered when nobody waited any more", "call", r.what, "after", took.Round(time.Millisecond), "err", err)
	}
	return left
}

// leave gives up waiting for a call; false: it has returned at that moment.
func (g *guard) leave(r *running) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.left = !r.over
	return r.left
}

// tooLate is the error of a caller that waited for limit.
func (g *guard) tooLate(what string, begun time.Time) error {
	return fmt.Errorf("%w: HNS has not answered %s for %s; the call goes on in the background", podnet.ErrTryAgain, what, time.Since(begun).Round(time.Second))
}

// answer is what a call returned.
type answer[T any] struct {
	value T
	err   error
}

// run makes a call for which the caller has taken a slot, and gives it back.
// after, if not nil, runs before that; left tells that the caller has gone and
// that the answer is after's alone.
func run[T any](ctx context.Context, g *guard, op Op, what string, fn func(context.Context) (T, error), after func(ctx context.Context, value T, err error, left bool)) (T, error) {
	r := g.start(op, what)
	done := make(chan answer[T], 1)
	alone := context.WithoutCancel(ctx)
	go func() {
		defer g.release(op)
		value, err := fn(alone)
		left := g.returned(alone, r, err)
		if after != nil {
			after(alone, value, err, left)
		}
		if !left {
			done <- answer[T]{value, err}
		}
	}()
	timer := time.NewTimer(g.limit)
	defer timer.Stop()
	var err error
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		err = fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case <-timer.C:
		err = g.tooLate(what, r.begun)
	}
	if !g.leave(r) {
		a := <-done
		return a.value, a.err
	}
	var zero T
	return zero, err
}

// join makes a call that is about key, or waits for the one that is under way.
func (g *guard) join(ctx context.Context, op Op, key any, what string, fn func(context.Context) error) error {
	f := g.flight(key)
	if f == nil {
		if err := g.take(ctx, op, what); err != nil {
			return err
		}
		if f = g.lead(ctx, op, key, what, fn); f == nil {
			g.release(op)
			return g.join(ctx, op, key, what, fn) // another was quicker
		}
	}
	timer := time.NewTimer(g.limit)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case <-timer.C:
		return g.tooLate(what, f.begun)
	}
}

// flight is the call about key that is under way; nil: none.
func (g *guard) flight(key any) *flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.joined[key]
}

// lead starts a call about key; nil: one is under way.
func (g *guard) lead(ctx context.Context, op Op, key any, what string, fn func(context.Context) error) *flight {
	f := &flight{begun: time.Now(), done: make(chan struct{})}
	g.mu.Lock()
	if g.joined[key] != nil {
		g.mu.Unlock()
		return nil
	}
	g.joined[key] = f
	g.mu.Unlock()
	r := g.start(op, what)
	alone := context.WithoutCancel(ctx)
	go func() {
		defer g.release(op)
		f.err = fn(alone)
		g.returned(alone, r, f.err)
		g.mu.Lock()
		delete(g.joined, key)
		g.mu.Unlock()
		close(f.done)
	}()
	return f
}

// settle waits until no create of that endpoint is under way, nor the clean-up
// after one that came too late: what it made must not be adopted.
func (g *guard) settle(ctx context.Context, name string) error {
	g.mu.Lock()
	over := g.creates[name]
	g.mu.Unlock()
	if over == nil {
		return nil
	}
	timer := time.NewTimer(g.limit)
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("%w: an earlier create of endpoint %q has not returned from HNS", podnet.ErrTryAgain, name)
	}
}

// isGone reports whether err says, in HNS's own code, that there is no such object.
func isGone(err error) bool { return errors.Is(err, ErrNotFound) }
