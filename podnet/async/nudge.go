package async

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// nudging is the state of a port that Open vSwitch cannot open although its
// host interface is there.
type nudging struct {
	next  time.Time
	delay time.Duration
	done  bool  // nudged at least once
	err   error // of the last nudge
}

// nudgedError adds to Open vSwitch's words what was done about them. The text
// does not change from one nudge to the next: a new text is a new event.
type nudgedError struct {
	error
	failed error // why the nudge itself could not be done
}

func (e nudgedError) Error() string {
	if e.failed != nil {
		return fmt.Sprintf("%v; its host interface is there, and the port could not be nudged: %v", e.error, e.failed)
	}
	return fmt.Sprintf("%v; its host interface is there, so the port is nudged again and again, without success so far", e.error)
}

func (e nudgedError) Unwrap() error { return e.error }

// nudge makes Open vSwitch try again to open those ports that are in error
// although their host interface is there: such an error may stand for ever, and
// any change of the configuration cures it (ovs-issues#343). Every port has its
// own back-off, which events do not shorten: a nudge makes events itself.
func (r *Readiness) nudge(ctx context.Context, items []*item) {
	if r.cfg.Nudge == nil || ctx.Err() != nil {
		return
	}
	var failing []*item
	for _, it := range items {
		if portErr := (*podnet.PortError)(nil); errors.As(it.err, &portErr) {
			failing = append(failing, it)
		}
	}
	r.fails(failing)
	r.outside(failing, func() { r.nudgeAll(ctx, failing) })
}

// fails starts the clocks of ports that have just come into error. An error
// gets a moment to go by itself.
func (r *Readiness) fails(items []*item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range items {
		if r.nudges[it.key.Name] == nil {
			r.nudges[it.key.Name] = &nudging{delay: r.cfg.NudgeMin, next: time.Now().Add(r.cfg.NudgeMin)}
		}
	}
}

// isHalfCured reports whether a port without a promise, which was in error, has
// a number again before Prepare has found nothing missing. Prepare may cure an
// error in two steps, and the first can be enough to get a number: Open vSwitch
// opens many a device under type "" too. The second would take that number away.
func (r *Readiness) isHalfCured(it *item) bool {
	if it.promised || r.cfg.Accept != AcceptListed || r.accept(it.key.Name) != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nudges[it.key.Name] != nil
}

func (r *Readiness) nudgeAll(ctx context.Context, failing []*item) {
	words := make([]error, len(failing))
	for i, it := range failing {
		words[i], it.err = it.err, nil
	}
	r.prepare(ctx, failing) // is the interface there still?
	ctx, cancel := context.WithTimeoutCause(ctx, r.cfg.StepTimeout, fmt.Errorf("no answer in %v", r.cfg.StepTimeout))
	defer cancel()
	for i, it := range failing {
		if it.prepared = it.err == nil; !it.prepared {
			continue // its absence is the better cause
		}
		it.err = words[i]
		if r.nudgeDue(it.key.Name) {
			r.nudged(it.key.Name, r.cfg.Nudge(ctx, it.key))
		}
		r.mu.Lock()
		if n := r.nudges[it.key.Name]; n != nil && n.done {
			it.err = nudgedError{it.err, n.err}
		}
		r.mu.Unlock()
	}
}

// nudgeDue reports whether it is time.
func (r *Readiness) nudgeDue(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nudges[name]
	if n == nil {
		return false // cancelled meanwhile
	}
	if wait := time.Until(n.next); wait > 0 {
		r.queue.AddAfter(podnet.PortKey{Name: name}, wait)
		return false
	}
	return true
}

func (r *Readiness) nudged(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nudges[name]
	if n == nil {
		return // cancelled meanwhile
	}
	n.done, n.err = true, err
	n.delay = min(2*n.delay, r.cfg.NudgeMax)
	n.next = time.Now().Add(n.delay)
	r.queue.AddAfter(podnet.PortKey{Name: name}, n.delay)
}
