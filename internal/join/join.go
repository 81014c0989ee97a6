// Package join gathers calls that wait at the same moment into one batch. It
// never waits for more calls to come: the first caller runs at once and alone,
// and whoever arrives while it runs shares the next run. An idle system pays no
// latency, a busy one pays the cost of a run once for many callers.
package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

var (
	// ErrClosed is returned by Do after Close.
	ErrClosed = errors.New("joiner is closed")
	// ErrInFlight is wrapped by Do's error when the caller left while its item was in a run: its outcome is unknown to the caller.
	ErrInFlight = errors.New("the caller left while its batch was in flight")
)

// Result is the outcome of one item of a batch.
type Result[R any] struct {
	Value R
	Err   error
}

// Joiner runs batches one after the other. Make it with New; it may be used by
// many goroutines.
type Joiner[T, R any] struct {
	// Abandoned, when not nil, receives the items of a batch whose callers
	// left while the run was in flight, with their results, so that the
	// committer can undo what nobody wants any more. It is called between two
	// runs, so the next run cannot meet what it removes; it must not call Do.
	// Its ctx ends at Close only. Set it before the first Do.
	Abandoned func(ctx context.Context, items []T, results []Result[R])

	run func(ctx context.Context, batch []T) []Result[R]
	max int

	mu      sync.Mutex
	queue   []*call[T, R]
	running *runner // nil: idle
	closed  bool
}

// runner is the one goroutine of a busy period.
type runner struct {
	stop context.CancelFunc // set per batch
	done chan struct{}
}

type call[T, R any] struct {
	ctx    context.Context // the caller's
	item   T
	batch  *batch // nil while it waits in the queue
	left   bool
	result Result[R]
	done   chan struct{} // closed once result is set
}

type batch struct {
	present int // callers that still wait
	cancel  context.CancelFunc
}

// New returns a Joiner that passes at most max items (0: no limit) to run, in
// the order of their Do calls. run returns one result per item. Its ctx carries
// the values of the first caller's and ends when every caller of the batch has
// left, or at Close: a run that has begun something it must finish goes on under
// context.WithoutCancel and a deadline of its own.
func New[T, R any](run func(ctx context.Context, batch []T) []Result[R], max int) *Joiner[T, R] {
	return &Joiner[T, R]{run: run, max: max}
}

// Do hands item to a run and waits for its result. When ctx ends first, Do
// returns its cause at once: an item that still waited is never run; one
// that is in flight goes on, and its result goes to Abandoned; the error then
// wraps ErrInFlight too.
func (j *Joiner[T, R]) Do(ctx context.Context, item T) (R, error) {
	var zero R
	if ctx.Err() != nil {
		return zero, context.Cause(ctx)
	}
	c := &call[T, R]{ctx: ctx, item: item, done: make(chan struct{})}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return zero, ErrClosed
	}
	j.queue = append(j.queue, c)
	if j.running == nil {
		j.running = &runner{done: make(chan struct{})}
		go j.work(j.running)
	}
	j.mu.Unlock()

	select {
	case <-c.done:
		return c.result.Value, c.result.Err
	case <-ctx.Done():
	}
	switch left, inFlight := j.leave(c); {
	case left && inFlight:
		return zero, fmt.Errorf("%w: %w", ErrInFlight, context.Cause(ctx))
	case left:
		return zero, context.Cause(ctx)
	}
	return c.result.Value, c.result.Err
}

// Close refuses further calls, fails the waiting ones with ErrClosed, ends the
// context of the run in flight and waits until it has returned.
func (j *Joiner[T, R]) Close() {
	j.mu.Lock()
	j.closed = true
	for _, c := range j.queue {
		c.result.Err = ErrClosed
		close(c.done)
	}
	j.queue = nil
	r := j.running
	if r != nil && r.stop != nil {
		r.stop()
	}
	j.mu.Unlock()
	if r != nil {
		<-r.done
	}
}

// leave reports whether c left before its result came, and if so whether its item was in a run.
func (j *Joiner[T, R]) leave(c *call[T, R]) (left, inFlight bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-c.done:
		return false, false
	default:
	}
	c.left = true
	if c.batch == nil {
		if i := slices.Index(j.queue, c); i >= 0 {
			j.queue = slices.Delete(j.queue, i, i+1)
		}
		return true, false
	}
	if c.batch.present--; c.batch.present == 0 {
		c.batch.cancel()
	}
	return true, true
}

// work runs batches until nobody waits; then the goroutine ends.
func (j *Joiner[T, R]) work(r *runner) {
	defer close(r.done)
	for {
		calls, ctx, stopCtx := j.next(r)
		if calls == nil {
			return
		}
		items := make([]T, len(calls))
		for i, c := range calls {
			items[i] = c.item
		}
		results := j.run(ctx, items)
		if len(results) != len(items) {
			err := fmt.Errorf("join: %d results for %d items", len(results), len(items))
			results = make([]Result[R], len(items))
			for i := range results {
				results[i].Err = err
			}
		}
		j.deliver(stopCtx, calls, results)
	}
}

// next takes the next batch off the queue, or retires the runner and returns
// nil. ctx is the run's; stopCtx ends at Close only.
func (j *Joiner[T, R]) next(r *runner) (calls []*call[T, R], ctx, stopCtx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	// A caller whose ctx has ended is about to leave: its item must not start.
	j.queue = slices.DeleteFunc(j.queue, func(c *call[T, R]) bool { return c.ctx.Err() != nil })
	n := len(j.queue)
	if n == 0 {
		j.running = nil
		return nil, nil, nil
	}
	if j.max > 0 {
		n = min(n, j.max)
	}
	calls = append(calls, j.queue[:n]...)
	j.queue = append(j.queue[:0:0], j.queue[n:]...)
	stopCtx, r.stop = context.WithCancel(context.WithoutCancel(calls[0].ctx))
	b := &batch{present: n}
	ctx, b.cancel = context.WithCancel(stopCtx)
	for _, c := range calls {
		c.batch = b
	}
	return calls, ctx, stopCtx
}

// deliver gives each caller its result, and Abandoned those of callers that left.
func (j *Joiner[T, R]) deliver(ctx context.Context, calls []*call[T, R], results []Result[R]) {
	var items []T
	var orphans []Result[R]
	j.mu.Lock()
	for i, c := range calls {
		if c.left {
			items, orphans = append(items, c.item), append(orphans, results[i])
			continue
		}
		c.result = results[i]
		close(c.done)
	}
	j.mu.Unlock()
	if len(items) > 0 && j.Abandoned != nil {
		j.Abandoned(ctx, items, orphans)
	}
}
