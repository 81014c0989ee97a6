package async

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// item is one port of a batch.
type item struct {
	key      podnet.PortKey // of the promise; without Gen when there is none
	promised bool
	prepared bool // the step before the number has succeeded
	idle     bool // the promise was kept or cancelled since: nothing to do
	err      error
}

// look is one attempt for a batch of names. What waits for nothing but its
// number goes first: the step before the number may hang, and must not hold
// those that are past it.
func (r *Readiness) look(ctx context.Context, sink podnet.PortSink, names []podnet.PortKey) []error {
	items := r.take(names)
	var first, then []*item
	for i := range items {
		switch it := &items[i]; {
		case it.idle:
		case r.cfg.Prepare != nil && (it.promised && !r.isPrepared(it) || r.isHalfCured(it)):
			then = append(then, it)
		default:
			first = append(first, it)
		}
	}
	r.sync(ctx, sink, first)
	r.outside(then, func() { r.prepare(ctx, then) })
	var ready []*item
	for _, it := range then {
		if it.prepared = it.err == nil; it.prepared {
			ready = append(ready, it)
		}
	}
	r.sync(ctx, sink, ready)
	r.nudge(ctx, append(first, ready...))

	noter, _ := sink.(podnet.Noter)
	errs := make([]error, len(items))
	for i := range items {
		it := &items[i]
		late, cause, again := r.settle(*it)
		if again {
			errs[i] = it.err
		}
		if !it.promised || !again || ctx.Err() != nil {
			continue
		}
		if noter != nil {
			noter.Note(it.key, it.err)
		}
		if late {
			sink.Late(ctx, it.key, cause)
		}
	}
	return errs
}

// take finds what the names stand for now. A watch may have reported a name
// before Begin; going on with the bare name would go round the acceptance rule.
func (r *Readiness) take(names []podnet.PortKey) []item {
	items := make([]item, len(names))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, name := range names {
		_, reported := r.reported[name.Name]
		delete(r.reported, name.Name)
		if p := r.promises[name.Name]; p != nil {
			items[i] = item{key: p.key, promised: true, prepared: p.prepared}
		} else {
			items[i] = item{key: name, idle: !reported}
		}
	}
	return items
}

// isPrepared reports whether a port is past the step before the number. A port
// that the session should list and does not may have lost what the step gave it.
func (r *Readiness) isPrepared(it *item) bool {
	return it.prepared && (r.cfg.Accept != AcceptListed || r.accept(it.key.Name) == nil)
}

// sync hands to the sink what the acceptance rule lets through.
func (r *Readiness) sync(ctx context.Context, sink podnet.PortSink, items []*item) {
	var due []*item
	for _, it := range items {
		switch {
		case it.promised:
			it.err = r.explained(ctx, it.key, r.accept(it.key.Name))
		case r.promisedMeanwhile(it.key.Name):
			// This attempt began before Begin, and a bare name goes round the rule.
			it.err = fmt.Errorf("port %s: %w: it was promised a moment ago", it.key.Name, podnet.ErrBusy)
		}
		if it.err == nil {
			due = append(due, it)
		}
	}
	if len(due) == 0 {
		return
	}
	give(due, sink.Sync(ctx, keysOf(due)))
}

func (r *Readiness) promisedMeanwhile(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.promises[name] != nil
}

// give hands out one result per item. A missing one is no success: a promise
// would be gone for it.
func give(items []*item, errs []error) {
	for i, it := range items {
		if i < len(errs) {
			it.err = errs[i]
		} else {
			it.err = fmt.Errorf("%w: %d results for %d ports", podnet.ErrOutcomeUnknown, len(errs), len(items))
		}
	}
}

func keysOf(items []*item) []podnet.PortKey {
	keys := make([]podnet.PortKey, len(items))
	for i, it := range items {
		keys[i] = it.key
	}
	return keys
}

// outside runs fn, which asks somebody outside of Open vSwitch and may hang,
// unless that would leave no worker to those who need nothing of it.
func (r *Readiness) outside(items []*item, fn func()) {
	if len(items) == 0 {
		return
	}
	select {
	case r.steps <- struct{}{}:
		defer func() { <-r.steps }()
		fn()
	default:
		for _, it := range items {
			it.err = fmt.Errorf("%w: what other ports need before their number takes long", podnet.ErrBusy)
		}
	}
}

// prepare runs the step before the number, for a limited time.
func (r *Readiness) prepare(ctx context.Context, items []*item) {
	if r.cfg.Prepare == nil || len(items) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.cfg.StepTimeout, fmt.Errorf("no answer in %v", r.cfg.StepTimeout))
	defer cancel()
	give(items, r.cfg.Prepare(ctx, keysOf(items)))
}

// explained gives the reason that OVSDB knows for a refusal, if it knows one.
func (r *Readiness) explained(ctx context.Context, key podnet.PortKey, refusal error) error {
	if refusal == nil || r.cfg.OFPort == nil {
		return refusal
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StepTimeout)
	defer cancel()
	number, err := r.cfg.OFPort(ctx, key)
	switch {
	case err != nil:
		return err
	case errors.Is(refusal, podnet.ErrNoNumber):
		// It has one; the session is away, or behind.
		return fmt.Errorf("port %s: %w: OVSDB says OpenFlow port %d, the OpenFlow session does not list it", key.Name, podnet.ErrNotListed, number)
	}
	return refusal
}

// accept applies the rule for first flows.
func (r *Readiness) accept(name string) error {
	if r.cfg.Accept == AcceptNumber {
		return nil
	}
	state, ok := r.cfg.Ports(name)
	switch {
	case !ok:
		return fmt.Errorf("port %s: %w: the OpenFlow session does not list it", name, podnet.ErrNoNumber)
	case r.cfg.Accept == AcceptLive && !state.Live:
		return fmt.Errorf("%w: port %s has OpenFlow port number %d and is not live: one end of its link is down", podnet.ErrPortDown, name, state.Number)
	}
	return nil
}

// settle records the outcome of an attempt. It reports whether there has to be
// another, and of a promised port whether it is late and which wait fails.
func (r *Readiness) settle(it item) (late bool, cause error, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := it.key.Name
	if it.err == nil {
		delete(r.nudges, name)
	}
	p := r.promises[name]
	if !it.promised {
		if it.err != nil && p == nil {
			r.reported[name] = struct{}{}
		}
		return false, nil, it.err != nil
	}
	if p == nil || p.key != it.key {
		return false, nil, false // cancelled meanwhile
	}
	if it.err == nil {
		delete(r.promises, name)
		return false, nil, false
	}
	// A link that is down may be so because somebody undid what Prepare did.
	p.prepared = it.prepared && !errors.Is(it.err, podnet.ErrPortDown)
	// A lock that was busy for a moment explains nothing; keep what does.
	if p.cause == nil || !errors.Is(it.err, podnet.ErrBusy) {
		p.cause = it.err
	}
	left := r.cfg.NotReadyAfter - time.Since(p.begun)
	if left > 0 {
		// The next retry may be further away than the deadline; the sooner one counts.
		r.queue.AddAfter(podnet.PortKey{Name: name}, left)
	}
	return left <= 0, p.cause, true
}
