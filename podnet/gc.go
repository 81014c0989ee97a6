package podnet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// GC removes every interface whose key is not in valid, and every address
// reservation of such keys (CNI verb GC). Interfaces that are being added right
// now, or are while it runs, stay. All are tried; the error names each that could not be removed.
func (n *Network) GC(ctx context.Context, valid []ifstore.Key) error {
	// Adds that the caller cannot know of: those that run, and those that begin
	// from now on. The bridge may take a while to read, and Adds that wait for it
	// too have their first chance then.
	begun := time.Now()
	if err := n.ensureReconciled(ctx); err != nil {
		return fmt.Errorf("garbage collection: %w", err)
	}
	keep := make(map[ifstore.Key]bool, len(valid))
	for _, key := range append(n.addingKeys(), valid...) {
		keep[key] = true
	}
	var mu sync.Mutex
	var errs []error
	var collectors sync.WaitGroup
	slots := make(chan struct{}, maxCollectors)
	for _, iface := range n.store.List() {
		if keep[iface.Key] || !iface.Created.Before(begun) {
			continue
		}
		slots <- struct{}{}
		collectors.Go(func() {
			defer func() { <-slots }()
			if err := n.collect(ctx, iface); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	collectors.Wait()
	if _, err := n.sweepAddresses(ctx, valid); err != nil {
		errs = append(errs, err)
	}
	if err := join(errs...); err != nil {
		return fmt.Errorf("garbage collection: %w", err)
	}
	return nil
}

// maxCollectors is how many interfaces GC removes at the same moment, so that
// they share transactions and bundles.
const maxCollectors = 16

// collect removes that life of an interface, unless it is being added.
func (n *Network) collect(ctx context.Context, iface ifstore.Interface) error {
	// Asked each time: an Add may have begun since.
	if slices.Contains(n.addingKeys(), iface.Key) {
		return nil
	}
	unlock, err := n.containers.lock(ctx, iface.ContainerID)
	if err != nil {
		return fmt.Errorf("%s: %w", iface.Key, err)
	}
	defer unlock()
	have, ok := n.store.Get(iface.Key)
	if !ok || !have.Created.Equal(iface.Created) || have.Gen != iface.Gen {
		return nil // deleted, or another one since
	}
	c := n.startCall(OpDelete, iface.Key, iface.Pod)
	err = n.remove(ctx, c, iface.Key)
	if err != nil {
		n.startRemoval(iface.Key, err)
	}
	return c.end(ctx, err)
}
