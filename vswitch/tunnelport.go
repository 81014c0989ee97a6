package vswitch

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

// Tunnel is a port whose packets travel to other nodes, see "Tunnel Options" in
// ovs-vswitchd.conf.db(5).
type Tunnel struct {
	Name        string
	Type        string            // "geneve", "vxlan" ...
	Options     map[string]string // "remote_ip" and others
	ExternalIDs map[string]string // podnet-owner among them
}

// EnsureTunnelPort makes a tunnel port, or makes one of the same podnet-owner
// as it has to be; a change of type or options closes and opens it, so its
// number may change. A port of that name that is another's: podnet.ErrPortExists.
func (c *Client) EnsureTunnelPort(ctx context.Context, want Tunnel) (podnet.PortKey, error) {
	key, err := c.findOwn(ctx, want.Name, want.ExternalIDs, func(r *ifaceRow) bool { return r.Type != "internal" && r.Type != "" })
	if errors.Is(err, podnet.ErrNoPort) {
		return c.add(ctx, addition{options: want.Options,
			port: podnet.Port{PortKey: podnet.PortKey{Name: want.Name}, Type: want.Type, ExternalIDs: want.ExternalIDs}})
	}
	if err != nil {
		return podnet.PortKey{}, fmt.Errorf("tunnel port %s: %w", want.Name, err)
	}
	if err := c.setTunnel(ctx, key, want); err != nil {
		return podnet.PortKey{}, fmt.Errorf("tunnel port %s: %w", want.Name, err)
	}
	return key, c.SetExternalIDs(ctx, key, want.ExternalIDs)
}

type tunnelChange struct {
	key  podnet.PortKey
	want Tunnel
}

func (c *Client) setTunnel(ctx context.Context, key podnet.PortKey, want Tunnel) error {
	_, err := joined(ctx, c, c.tunnels, tunnelChange{key, want})
	return err
}

func (c *Client) runTunnelChanges(ctx context.Context, changes []tunnelChange) []join.Result[struct{}] {
	errs := c.commit(ctx, batch{
		kind: "tunnel", n: len(changes),
		key: func(i int) string { return changes[i].key.Name },
		settle: func(t *tables, i int) (bool, error) {
			f, ok := c.find(t, changes[i].key)
			if !ok {
				return false, podnet.ErrNoPort
			}
			return f.iface.Type == changes[i].want.Type && maps.Equal(f.iface.Options, changes[i].want.Options), nil
		},
		plan: func(t *tables, items []int) (ops []ovsdb.Operation, owner []int) {
			for _, i := range items {
				ops = append(ops, ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: tableInterface, Where: byUUID(changes[i].key.Gen),
					Row: ovsdb.Row{"type": changes[i].want.Type, "options": stringMap(changes[i].want.Options)}})
			}
			return ops, items
		},
		gone: podnet.ErrNoPort,
	})
	results := make([]join.Result[struct{}], len(changes))
	for i, err := range errs {
		results[i].Err = err
	}
	return results
}
