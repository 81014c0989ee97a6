package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// fault makes calls of one method for one container fail.
type fault struct {
	op    string
	c     int // -1: of whatever container
	how   string
	times int
	until time.Time // of a hang
}

// hook is part of every call that the agent makes of a fake.
func (n *node) hook(ctx context.Context, call podnettest.FaultCall) error {
	inc := incarnationOf(ctx)
	if inc == nil {
		return nil // the calls without a context: Cancel
	}
	if inc.killed.Load() {
		return errKilled
	}
	err := n.pause(ctx, call)
	if err == nil {
		err = n.fail(ctx, call)
	}
	if inc.killed.Load() {
		return errKilled
	}
	return err
}

// pause takes the time that a call needs, half of it before its effect.
func (n *node) pause(ctx context.Context, call podnettest.FaultCall) error {
	d := n.latency(call.Op, call.Subject)
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cutShort(ctx, call)
	}
}

// cutShort is the error of a call whose context ended.
func cutShort(ctx context.Context, call podnettest.FaultCall) error {
	if call.Done {
		return fmt.Errorf("%w: %w", podnet.ErrOutcomeUnknown, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", podnet.ErrNotConnected, context.Cause(ctx))
}

// latency depends on the seed and on how often that call was made before, and
// on nothing else: dropping an event from a schedule leaves the others' alone.
func (n *node) latency(op, subject string) time.Duration {
	n.mu.Lock()
	id := op + " " + subject
	count := n.calls[id]
	n.calls[id]++
	slow := n.slow
	n.mu.Unlock()
	h := n.hash(id, count)
	switch slow {
	case 0:
		return 0
	case 1:
		return time.Duration(h%10) * time.Millisecond
	case 2:
		if h%16 == 0 {
			return time.Duration(h>>8%1000) * time.Millisecond
		}
		return time.Duration(h>>8%20) * time.Millisecond
	}
	if h%8 == 0 {
		return time.Duration(h>>8%3000) * time.Millisecond
	}
	return time.Duration(h>>8%50) * time.Millisecond
}

func (n *node) hash(text string, count uint64) uint64 {
	f := fnv.New64a()
	fmt.Fprintf(f, "%d %d %s", n.sched.Seed, count, text)
	return f.Sum64()
}

// fail plays the faults that are meant for a call.
func (n *node) fail(ctx context.Context, call podnettest.FaultCall) error {
	c, known := n.index[call.Subject]
	if !known {
		c = -1
	}
	n.mu.Lock()
	now := time.Now()
	at := slices.IndexFunc(n.faults, func(f *fault) bool {
		if f.op != call.Op || (f.c != c && f.c != -1) {
			return false
		}
		if f.how == hang {
			return !call.Done && now.Before(f.until)
		}
		return f.times > 0 && call.Done == (f.how == UnknownAfter)
	})
	var f fault
	if at >= 0 {
		n.faults[at].times--
		f = *n.faults[at]
	}
	calm := n.calm
	n.mu.Unlock()
	switch f.how {
	case hang:
		timer := time.NewTimer(f.until.Sub(now))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-calm:
		case <-ctx.Done():
			return cutShort(ctx, call)
		}
	case Plain:
		return fmt.Errorf("%s %s: it was told to fail", call.Op, call.Subject)
	case UnknownAfter, UnknownBefore:
		return fmt.Errorf("%s %s: %w", call.Op, call.Subject, podnet.ErrOutcomeUnknown)
	case NotConnected:
		return fmt.Errorf("%s %s: %w", call.Op, call.Subject, podnet.ErrNotConnected)
	}
	return nil
}

func (n *node) addFault(f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, &f)
}

// peace ends every fault and makes the parts quick until war.
func (n *node) peace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults, n.slow = nil, min(n.slow, 1)
	close(n.calm)
	n.calm = make(chan struct{})
}

func (n *node) war() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow = n.sched.Slow
}
