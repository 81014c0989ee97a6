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
	readiness := make(chan error, 1)
	go func() {
		err := n.cfg.Readiness.Run(ctx, n)
		if ctx.Err() == nil && err == nil {
			err = errors.New("it returned before its context ended")
		}
		readiness <- err
		cancel()
	}()
	var workers sync.WaitGroup
	n.start(ctx)
	n.loop(ctx, &workers)
	workers.Wait()
	if err := <-readiness; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("readiness of ports: %w", err)
	}
	return nil
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

func (n *Network) loop(ctx context.Context, workers *sync.WaitGroup) {
	retry := time.NewTicker(n.cfg.RetryInterval)
	defer retry.Stop()
	sweep := time.NewTicker(n.cfg.SweepInterval)
	defer sweep.Stop()
	n.sweep(ctx) // the first of two observations
	for {
		n.runRemovals(ctx, workers)
		select {
		case <-ctx.Done():
			return
		case <-n.wakeRun:
		case <-retry.C:
			n.lookAtWaiting(ctx)
		case <-sweep.C:
			n.sweep(ctx)
		}
	}
}

// lookAtWaiting syncs interfaces that wait without a promise of the backend: a
// port that was lost, or restored without a number. An event of the port watch
// is quicker; this repairs what is lost on the way. Then it tells the Pods
// whose wait is overdue.
func (n *Network) lookAtWaiting(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, n.cfg.RetryInterval)
	defer cancel()
	var keys []PortKey
	for _, iface := range n.store.List() {
		if iface.State == ifstore.StateWaiting && !n.trackOf(iface.Key).promised {
			keys = append(keys, portKey(iface))
		}
	}
	if len(keys) > 0 {
		n.Sync(attempt, keys)
	}
	for _, iface := range n.store.List() {
		if iface.State == ifstore.StateWaiting {
			n.tellIfLate(ctx, iface)
		}
	}
}
