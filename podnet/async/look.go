package async

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// look is one attempt for a batch of keys: the step before the number for the
// promised ones, the acceptance rule, then the sink.
func (r *Readiness) look(ctx context.Context, sink podnet.PortSink, keys []podnet.PortKey) []error {
	errs := make([]error, len(keys))
	keys, isPromised := r.resolve(keys)
	var promised, due []int // indexes into keys
	for i, key := range keys {
		switch {
		case isPromised[i]:
			promised = append(promised, i)
		case key.Gen == "":
			due = append(due, i)
		}
		// Else the promise was kept or cancelled since: nothing to do.
	}
	r.prepare(ctx, keys, promised, errs)
	for _, i := range promised {
		if errs[i] == nil {
			errs[i] = r.accept(keys[i].Name)
		}
		if errs[i] == nil {
			due = append(due, i)
		}
	}
	if len(due) > 0 {
		for n, err := range sink.Sync(ctx, pick(keys, due)) {
			errs[due[n]] = err
		}
	}
	for _, i := range promised {
		if late, cause := r.settle(keys[i], errs[i]); late && ctx.Err() == nil {
			sink.Late(ctx, keys[i], cause)
		}
	}
	return errs
}

func pick(keys []podnet.PortKey, indexes []int) []podnet.PortKey {
	picked := make([]podnet.PortKey, len(indexes))
	for n, i := range indexes {
		picked[n] = keys[i]
	}
	return picked
}

// resolve turns a bare name into the promised life of it. A watch may have
// reported the name before Begin; going on with the bare name would go round
// the acceptance rule.
func (r *Readiness) resolve(keys []podnet.PortKey) (resolved []podnet.PortKey, promised []bool) {
	resolved, promised = slices.Clone(keys), make([]bool, len(keys))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, key := range resolved {
		p := r.promises[key.Name]
		if p != nil && (key.Gen == "" || p.key == key) {
			resolved[i], promised[i] = p.key, true
		}
	}
	return resolved, promised
}

func (r *Readiness) prepare(ctx context.Context, keys []podnet.PortKey, promised []int, errs []error) {
	if r.cfg.Prepare == nil || len(promised) == 0 {
		return
	}
	for n, err := range r.cfg.Prepare(ctx, pick(keys, promised)) {
		errs[promised[n]] = err
	}
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
		return fmt.Errorf("port %s: OpenFlow port %d is not live: %w", name, state.Number, podnet.ErrNoNumber)
	}
	return nil
}

// settle records the outcome of an attempt for a promised port. It reports
// whether the port is late and which wait fails.
func (r *Readiness) settle(key podnet.PortKey, err error) (late bool, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.promises[key.Name]
	if p == nil || p.key != key {
		return false, nil // cancelled meanwhile
	}
	if err == nil {
		delete(r.promises, key.Name)
		return false, nil
	}
	// A lock that was busy for a moment explains nothing; keep what does.
	if p.cause == nil || !errors.Is(err, podnet.ErrBusy) {
		p.cause = err
	}
	left := r.cfg.NotReadyAfter - time.Since(p.begun)
	if left > 0 {
		// The next retry may be further away than the deadline; the sooner one counts.
		r.queue.AddAfter(key, left)
	}
	return left <= 0, p.cause
}
