package podnet

import (
	"context"
	"fmt"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
)

// GC removes every interface whose key is not in valid, and every address
// reservation of such keys (CNI verb GC). Interfaces that are being added right
// now stay. All are tried; the error names each that could not be removed.
func (n *Network) GC(ctx context.Context, valid []ifstore.Key) error {
	if err := n.ensureReconciled(ctx); err != nil {
		return fmt.Errorf("garbage collection: %w", err)
	}
	keep := make(map[ifstore.Key]bool, len(valid))
	for _, key := range valid {
		keep[key] = true
	}
	var errs []error
	for _, iface := range n.store.List() {
		// Asked each time: an Add may have begun since.
		if keep[iface.Key] || slices.Contains(n.addingKeys(), iface.Key) {
			continue
		}
		if err := n.collect(ctx, iface); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := n.sweepAddresses(ctx, valid); err != nil {
		errs = append(errs, err)
	}
	if err := join(errs...); err != nil {
		return fmt.Errorf("garbage collection: %w", err)
	}
	return nil
}

// collect removes that life of an interface.
func (n *Network) collect(ctx context.Context, iface ifstore.Interface) error {
	unlock, err := n.containers.lock(ctx, iface.ContainerID)
	if err != nil {
		return fmt.Errorf("%s: %w", iface.Key, err)
	}
	defer unlock()
	have, ok := n.store.Get(iface.Key)
	if !ok || !have.Created.Equal(iface.Created) || have.Gen != iface.Gen {
		return nil // deleted, or another one since
	}
	return n.discard(ctx, iface.Key)
}
