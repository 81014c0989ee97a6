package vswitch

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// EnsureInternalPort makes a port whose netdev Open vSwitch itself provides,
// such as the gateway, with that MAC (zero: Open vSwitch chooses) and
// external_ids. One that is there stays as it is but for missing external_ids;
// it must be of type internal, on our bridge, and have the same podnet-owner,
// else: podnet.ErrPortExists.
func (c *Client) EnsureInternalPort(ctx context.Context, name string, mac ifstore.MAC, externalIDs map[string]string) (podnet.PortKey, error) {
	key, err := c.findOwn(ctx, name, externalIDs, func(r *ifaceRow) bool { return r.Type == "internal" })
	if errors.Is(err, podnet.ErrNoPort) {
		a := addition{port: podnet.Port{PortKey: podnet.PortKey{Name: name}, Type: "internal", ExternalIDs: externalIDs}}
		if !mac.IsZero() {
			a.mac = mac.String()
		}
		return c.add(ctx, a)
	}
	if err != nil {
		return podnet.PortKey{}, fmt.Errorf("internal port %s: %w", name, err)
	}
	return key, c.SetExternalIDs(ctx, key, externalIDs)
}

// findOwn finds a port of the same owner on our bridge; any other of the name is podnet.ErrPortExists.
func (c *Client) findOwn(ctx context.Context, name string, ids map[string]string, fits func(*ifaceRow) bool) (podnet.PortKey, error) {
	key := podnet.PortKey{Name: name}
	err := c.await(ctx, "", func(t *tables) (bool, error) {
		gen, ok := t.byName[name]
		if !ok {
			return false, podnet.ErrNoPort
		}
		f, ok := t.byGen(gen)
		if !ok || f.bridge == nil || f.bridge.Name != c.cfg.Bridge || !fits(f.iface) || f.port.ExternalIDs[ownerID] != ids[ownerID] {
			return false, fmt.Errorf("%w; choose another name, or remove it (ovs-vsctl del-port %s)", portExists(gen, f), name)
		}
		key.Gen = gen
		return true, nil
	})
	return key, err
}
