package podnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
)

// sweep removes interfaces whose container is gone and that nobody deleted:
// runtimes lose Deletes when they are restarted or run out of time. One
// observation is not enough, because what is asked may be in the middle of a
// change; two in a row count. An interface is never swept because it waits.
func (n *Network) sweep(ctx context.Context) {
	if prober, ok := n.cfg.Linker.(Prober); ok {
		for _, iface := range n.store.List() {
			if ctx.Err() != nil {
				return
			}
			if iface.State == ifstore.StateWaiting || iface.State == ifstore.StateReady {
				n.probe(ctx, prober, iface)
			}
		}
	}
	if _, err := n.sweepAddresses(ctx, nil); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Addresses that nobody uses cannot be freed now; the next sweep tries again")
	}
}

func (n *Network) probe(ctx context.Context, prober Prober, iface ifstore.Interface) {
	logger := klog.FromContext(ctx)
	alive, err := prober.Alive(ctx, iface)
	if err != nil {
		logger.V(2).Info("Cannot tell whether a container still exists", "interface", iface.Key.String(), "reason", err.Error())
		return // no observation at all
	}
	now := time.Now()
	var again bool
	n.tracked(iface.Key, func(t *track) {
		switch {
		case alive:
			t.absent = time.Time{}
		case t.absent.IsZero():
			t.absent = now
		default:
			again = now.Sub(t.absent) >= n.cfg.SweepInterval
		}
	})
	if !again {
		return
	}
	// Long enough for a Sync to give way; an Add or a Delete cares for it itself.
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err := n.containers.lock(soon, iface.ContainerID)
	if err != nil {
		return
	}
	defer unlock()
	have, ok := n.store.Get(iface.Key)
	if !ok || have.Gen != iface.Gen || have.State == ifstore.StateWithdrawing {
		return
	}
	logger.Info("Removing an interface whose container is gone", "interface", iface.Key.String(), "pod", iface.Pod.String(), "port", iface.Name)
	if _, err := n.store.Update(iface.Key, iface.Gen, markWithdrawing); err == nil {
		// Not here: after a reboot there are many, and their workers share transactions and bundles.
		n.startRemoval(iface.Key, errors.New("its container is gone"))
	}
}

// sweepAddresses frees every reservation but those of interfaces that exist or
// are being made, and of the keys in keep. Allocations wait meanwhile: one
// that is in nobody's list yet must not be freed.
func (n *Network) sweepAddresses(ctx context.Context, keep []ifstore.Key) (freed int, err error) {
	sweeper, ok := n.cfg.Addresses.(AddressSweeper)
	if !ok {
		return 0, nil
	}
	release, err := n.leases.exclude(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	keys := append(slices.Clone(keep), n.addingKeys()...)
	n.mu.Lock()
	keys = append(keys, n.unreadable...)
	n.mu.Unlock()
	for _, iface := range n.store.List() {
		keys = append(keys, iface.Key)
	}
	freed, err = sweeper.Keep(ctx, keys)
	if freed > 0 {
		klog.FromContext(ctx).Info("Freed addresses that no interface uses", "addresses", freed)
	}
	if err != nil {
		return freed, fmt.Errorf("addresses: %w", err)
	}
	return freed, nil
}
