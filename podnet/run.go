package podnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
)

// Run does what goes on between operations until ctx ends: it runs the
// readiness backend, looks again at interfaces that wait and at those whose
// container may be gone, and completes removals. It reads the bridge first if
// nothing has. It returns nil after ctx ended and all its goroutines have, or
// the error with which the readiness backend gave up.
func (n *Network) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Before the backend, which must know its old promises when the first name
	// comes, and before the sweep, to which an address is free that no interface
	// known to the store has.
	if n.start(ctx); !n.isReconciled() {
		return nil // ctx has ended
	}
	readiness := make(chan error, 1)
	go func() {
		err := n.cfg.Readiness.Run(ctx, n)
		if ctx.Err() == nil && err == nil {
			err = errors.New("it returned before its context ended")
		}
		readiness <- err
		cancel()
	}()
	var loops sync.WaitGroup
	loops.Go(func() { n.loopRemovals(ctx) })
	loops.Go(func() { every(ctx, n.cfg.RetryInterval, func() { n.tellLate(ctx) }) })
	loops.Go(func() { every(ctx, n.cfg.RetryInterval, func() { n.lookAtWaiting(ctx) }) })
	loops.Go(func() { every(ctx, n.cfg.RetryInterval, func() { n.noteTold(ctx) }) })
	loops.Go(func() {
		n.sweep(ctx) // the first of two observations
		every(ctx, n.cfg.SweepInterval, func() { n.sweep(ctx) })
	})
	loops.Wait()
	if err := <-readiness; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("readiness of ports: %w", err)
	}
	return nil
}

// every calls fn at each interval until ctx ends. The loops of Run are apart
// from each other because any of them may have to wait for a peer that is away.
func every(ctx context.Context, interval time.Duration, fn func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fn()
		case <-ctx.Done():
			return
		}
	}
}

// start reads the bridge, as often as it takes.
func (n *Network) start(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for delay := 100 * time.Millisecond; ctx.Err() == nil; delay = min(2*delay, n.cfg.RetryInterval) {
		err := n.ensureReconciled(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		logger.Error(err, "The interfaces of the bridge cannot be restored yet", "retryIn", delay)
		_ = pause(ctx, delay)
	}
}

// loopRemovals gives every removal a worker, until ctx ends and all have returned.
func (n *Network) loopRemovals(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for {
		n.runRemovals(ctx, &workers)
		select {
		case <-n.wakeRun:
		case <-ctx.Done():
			return
		}
	}
}

// lookAtWaiting syncs interfaces that wait without a promise of the backend: a
// port that was lost, or restored without a number. An event of the port watch
// is quicker; this repairs what is lost on the way. Those whose flows may stand
// are looked at in spite of a promise: the backend holds back a port that the
// switch no longer lists, and the flows would stay.
func (n *Network) lookAtWaiting(ctx context.Context) {
	var keys []PortKey
	for _, iface := range n.store.List() {
		if t := n.trackOf(iface.Key); iface.State == ifstore.StateWaiting && (!t.promised || len(t.standing) > 0) {
			keys = append(keys, portKey(iface))
		}
	}
	if len(keys) > 0 {
		n.Sync(ctx, keys) // an error is what the interface waits for; its record says so
	}
}

// tellLate tells the Pods whose wait is overdue.
func (n *Network) tellLate(ctx context.Context) {
	for _, iface := range n.store.List() {
		if iface.State == ifstore.StateWaiting {
			n.tellIfLate(ctx, iface)
		}
	}
}
