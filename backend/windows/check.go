package windows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
)

// ErrVanished: HNS no longer has the endpoint of an interface that podnet did
// not remove. Another program deleted it, or HNS lost its state. The Pod has no
// network until it is made anew; podnet cannot repair it, because the interface
// inside the container went with the endpoint.
var ErrVanished = errors.New("its HNS endpoint vanished: another program deleted it, or HNS was restarted and forgot it; delete the Pod so that it is made anew")

// Check compares the endpoint with the record: its id, name, network,
// namespace, MAC address, addresses and state. The error holds every
// difference, in one line.
func (l *Linker) Check(ctx context.Context, iface ifstore.Interface) error {
	found, err := l.endpointsNamed(ctx, iface.Name, true)
	if err != nil {
		return fmt.Errorf("look for endpoint %q of %v: %w", iface.Name, iface.Key, err)
	}
	return compare(iface, found)
}

// Audit is Check for many interfaces with one list of HNS: one result for each,
// nil when all is as recorded. The error tells that HNS could not be asked. It
// is for a periodic comparison: HNS loses endpoints without telling anybody.
func (l *Linker) Audit(ctx context.Context, ifaces []ifstore.Interface) ([]error, error) {
	objects, err := l.guard.List(ctx, Query{Kind: Endpoints, States: true})
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	byName := make(map[string][]Endpoint)
	for _, e := range objects.Endpoints {
		byName[e.Name] = append(byName[e.Name], e)
	}
	results := make([]error, len(ifaces))
	for i, iface := range ifaces {
		results[i] = compare(iface, byName[iface.Name])
	}
	return results, nil
}

// compare looks at the endpoints that have the interface's name.
func compare(iface ifstore.Interface, found []Endpoint) error {
	r := recordedOf(iface)
	i := slices.IndexFunc(found, func(e Endpoint) bool { return e.ID == r.endpoint || r.endpoint.IsZero() })
	if i < 0 {
		err := fmt.Errorf("endpoint %q (%s): %w", iface.Name, r.endpoint, ErrVanished)
		if len(found) > 0 {
			err = fmt.Errorf("%w; in its place is %v", err, found[0])
		}
		return err
	}
	e := found[i]
	var d differences
	if len(found) > 1 {
		d.add("HNS has %d endpoints of that name", len(found))
	}
	if !r.network.IsZero() && e.Network != r.network {
		d.add("network is %s, want %s", e.Network, r.network)
	}
	switch {
	case r.namespace.IsZero() || e.Namespace == r.namespace:
	case e.Namespace.IsZero():
		d.add("is in no namespace, want %s", r.namespace)
	default:
		d.add("namespace is %s, want %s", e.Namespace, r.namespace)
	}
	if e.MAC != iface.MAC {
		d.add("MAC address is %v, want %v", e.MAC, iface.MAC)
	}
	var want []netip.Prefix
	for _, a := range iface.Addresses {
		want = append(want, a.Prefix)
	}
	d.addresses(e.Addresses, want)
	if e.State == StateDegraded || e.State == StateDestroyed || e.State == StateDetached {
		d.add("state is %v", e.State)
	}
	if err := d.err(); err != nil {
		return fmt.Errorf("endpoint %q: %w", iface.Name, err)
	}
	return nil
}
