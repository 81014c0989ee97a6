package windows

import (
	"context"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
)

// Alive reports whether the sandbox behind iface still exists. false needs proof
// that HNS remembers: the endpoint is there, and the namespace it was attached to
// is not. An endpoint that is gone proves nothing, as HNS forgets all of them
// when it loses its state, while the containers run on; it is an error that
// wraps ErrVanished. So is every answer that HNS does not give.
func (l *Linker) Alive(ctx context.Context, iface ifstore.Interface) (bool, error) {
	r := recordedOf(iface)
	if r.namespace.IsZero() {
		return true, nil // nothing recorded to look at
	}
	found, err := l.endpointsNamed(ctx, iface.Name, false)
	if err != nil {
		return false, fmt.Errorf("look for endpoint %q: %w", iface.Name, err)
	}
	remembered := false
	for _, e := range found {
		remembered = remembered || e.ID == r.endpoint
	}
	if !remembered {
		return false, fmt.Errorf("interface %v: %w", iface.Key, ErrVanished)
	}
	gone, err := l.namespaceGone(ctx, r.namespace)
	if err != nil {
		return false, fmt.Errorf("look for namespace %s: %w", r.namespace, err)
	}
	return !gone, nil
}
