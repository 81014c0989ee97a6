package podnet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
)

// removal is the rest of a Delete, of a failed Add's undo or of a sweep that
// could not be completed at once. It goes on under Run until it is done.
type removal struct {
	key     ifstore.Key
	done    chan struct{} // closed when nothing is left
	working bool          // a worker has it; guarded by Network.mu

	mu    sync.Mutex
	cause error // of the latest failed attempt
}

// wait joins the removal until ctx ends.
func (r *removal) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: the removal goes on: %w", ErrTryAgain, r.lastCause())
	}
}

func (r *removal) lastCause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

func (r *removal) failed(err error) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = r.cause == nil || r.cause.Error() != err.Error()
	r.cause = err
	return changed
}

// startRemoval hands key to Run, or returns the removal that is under way.
func (n *Network) startRemoval(key ifstore.Key, cause error) *removal {
	n.mu.Lock()
	r := n.removals[key]
	if r == nil {
		r = &removal{key: key, done: make(chan struct{})}
		n.removals[key] = r
	}
	n.mu.Unlock()
	r.failed(cause)
	select {
	case n.wakeRun <- struct{}{}:
	default:
	}
	return r
}

// runRemovals starts a worker for every removal that has none. Workers are many
// on purpose: the flow changes of those that wait at the same moment are joined.
func (n *Network) runRemovals(ctx context.Context, workers *sync.WaitGroup) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.removals {
		if r.working {
			continue
		}
		r.working = true
		workers.Go(func() {
			defer func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				r.working = false
			}()
			n.workRemoval(ctx, r)
		})
	}
}

const (
	minRemovalDelay = 250 * time.Millisecond
	maxRemovalDelay = 30 * time.Second
)

// workRemoval tries until nothing is left or ctx ends. A replay that has just
// been completed is a good moment, so it ends the delay.
func (n *Network) workRemoval(ctx context.Context, r *removal) {
	logger := klog.FromContext(ctx)
	for delay := minRemovalDelay; ; delay = min(2*delay, maxRemovalDelay) {
		n.mu.Lock()
		replay := n.newReplay
		n.mu.Unlock()
		err := n.tryRemoval(ctx, r)
		if err == nil || ctx.Err() != nil {
			return
		}
		if r.failed(err) {
			logger.Info("Removal of an interface cannot be completed yet", "interface", r.key.String(), "reason", err.Error())
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-replay:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (n *Network) tryRemoval(ctx context.Context, r *removal) error {
	attempt, cancel := context.WithTimeout(ctx, n.cfg.RemoveTimeout)
	defer cancel()
	unlock, err := n.containers.lock(attempt, r.key.ContainerID)
	if err != nil {
		return err
	}
	defer unlock()
	// A repeated Delete may have completed it, and an Add made a new one since.
	if iface, ok := n.store.Get(r.key); !ok || iface.State == ifstore.StateWithdrawing {
		if err := n.remove(attempt, nil, r.key); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.removals, r.key)
	close(r.done)
	return nil
}
