package async

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// ErrNoDevice is podnet.ErrNoDevice: the host interface is not there yet. It comes wrapped with the name.
var ErrNoDevice = podnet.ErrNoDevice

// deviceError is ErrNoDevice in words for the owner of a Pod.
type deviceError string

func (name deviceError) Error() string {
	return fmt.Sprintf("host interface %s has not appeared yet", string(name))
}

func (deviceError) Unwrap() error { return ErrNoDevice }

// Appearance tells which host interfaces are there. All that ask within one
// tick share a listing, because on some systems a listing is dear (Windows asks
// the host network service) and as many Pods may wait as a node has. One listing
// runs at a time, so one that hangs costs one goroutine and holds nobody longer
// than his context. All methods may be called concurrently.
type Appearance struct {
	list func(context.Context) ([]string, error)
	tick time.Duration

	mu      sync.Mutex
	changes uint64   // calls of Changed
	latest  *listing // the last good one
	running *listing // nil: none
}

// listing is one call of list.
type listing struct {
	begun   time.Time
	changes uint64
	cancel  context.CancelFunc
	callers int  // that wait
	ended   bool // by the last caller that left
	done    chan struct{}

	names map[string]struct{} // valid once done is closed
	err   error
}

// NewAppearance returns an Appearance over list, which names every host
// interface. A listing serves for tick (0: 1 s), a failed one only those that
// waited for it.
func NewAppearance(list func(context.Context) ([]string, error), tick time.Duration) *Appearance {
	setDefault(&tick, time.Second)
	return &Appearance{list: list, tick: tick}
}

// Check returns one result per name: nil when the host interface is there, an
// error that wraps ErrNoDevice when it is not, and any other error when that
// cannot be told, ctx's end included.
func (a *Appearance) Check(ctx context.Context, names []string) []error {
	errs := make([]error, len(names))
	if len(names) == 0 {
		return errs
	}
	there, err := a.current(ctx)
	for i, name := range names {
		if err != nil {
			errs[i] = fmt.Errorf("host interface %s: list host interfaces: %w", name, err)
		} else if _, ok := there[name]; !ok {
			errs[i] = deviceError(name)
		}
	}
	return errs
}

// Changed tells that a host interface came or went: the next Check lists
// anew. Whoever watches for interfaces calls it before he reports their names.
func (a *Appearance) Changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changes++
}

// current returns a listing that is fresh enough: within the tick, and begun
// after the last change known when it was asked for.
func (a *Appearance) current(ctx context.Context) (map[string]struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	want := a.changes
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if l := a.latest; l != nil && l.changes >= want && time.Since(l.begun) < a.tick {
			return l.names, nil
		}
		l := a.running
		if l == nil {
			l = a.start(ctx)
		}
		if !a.wait(ctx, l) {
			return nil, context.Cause(ctx)
		}
		if l.changes >= want && (l.err == nil || !l.ended) {
			return l.names, l.err
		}
	}
}

// start begins a listing. It does not end with the first caller's context:
// others may have joined it. a.mu is held.
func (a *Appearance) start(ctx context.Context) *listing {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &listing{begun: time.Now(), changes: a.changes, cancel: cancel, done: make(chan struct{})}
	a.running = l
	go func() {
		defer cancel()
		list, err := a.list(ctx)
		names := make(map[string]struct{}, len(list))
		for _, name := range list {
			names[name] = struct{}{}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		l.names, l.err = names, err
		if err == nil {
			a.latest = l
		}
		a.running = nil
		close(l.done)
	}()
	return l
}

// wait reports whether l ended before ctx did. a.mu is held, but not meanwhile.
func (a *Appearance) wait(ctx context.Context, l *listing) bool {
	l.callers++
	a.mu.Unlock()
	defer a.mu.Lock()
	select {
	case <-l.done:
		return true
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.callers--; l.callers == 0 {
		l.ended = true
		l.cancel()
	}
	return false
}
