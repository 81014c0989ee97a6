package windows

import (
	"context"
	"fmt"
	"sync"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/ifstore"
)

// LateStep is something that needs the vNIC of a Pod and therefore cannot be
// done in ADD.
type LateStep struct {
	// Name says in messages what could not be done: "set the MTU".
	Name string
	// Run does it. iface has what the port's external_ids tell; Name and Gen
	// are the port's. It must be idempotent: it is repeated until it succeeds, and
	// again when the port's type is switched anew. It must end with ctx. Calls for
	// different ports run at the same time.
	Run func(ctx context.Context, iface ifstore.Interface, vnic hostif.Adapter) error
}

// MTUStep returns the step that gives a vNIC the MTU of its interface; an
// interface without one keeps what Windows chose. set must return nil only when
// the MTU is in force, read back (*hostif.MTUSetter does).
func MTUStep(set func(ctx context.Context, vnic hostif.Adapter, mtu int) error) LateStep {
	return LateStep{Name: "set the MTU", Run: func(ctx context.Context, iface ifstore.Interface, vnic hostif.Adapter) error {
		if iface.MTU == 0 {
			return nil
		}
		return set(ctx, vnic, iface.MTU)
	}}
}

// adapters keeps the latest listing: what has appeared is also described by
// it, so that late steps need none of their own.
type adapters struct {
	list func(ctx context.Context) ([]hostif.Adapter, error)

	mu     sync.Mutex
	latest map[string]hostif.Adapter // by alias
}

func (a *adapters) names(ctx context.Context) ([]string, error) {
	list, err := a.list(ctx)
	if err != nil {
		return nil, err
	}
	names, latest := make([]string, len(list)), make(map[string]hostif.Adapter, len(list))
	for i, one := range list {
		names[i], latest[one.Alias] = one.Alias, one
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.latest = latest
	return names, nil
}

func (a *adapters) find(alias string) (hostif.Adapter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, ok := a.latest[alias]
	if !ok {
		return one, fmt.Errorf("host interface %s has gone again", alias)
	}
	return one, nil
}
