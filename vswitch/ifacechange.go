package vswitch

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

// ifaceChange sets one column of an Interface row.
type ifaceChange struct {
	key    podnet.PortKey
	column string
	value  any
	// choose, if set, gives the value when the transaction is made.
	choose func(*tables, found) any
	is     func(*ifaceRow) bool // it is so already
}

// SetType sets the type of that life of the port, such as "" or "internal";
// nothing is written when it has that type. ovs-vswitchd closes a device whose
// type changes and opens it anew, so the number may change too. Changes that
// wait at the same moment share a transaction. Gone: podnet.ErrNoPort. A
// transaction that ctx left behind still happens.
func (c *Client) SetType(ctx context.Context, key podnet.PortKey, typ string) error {
	if !utf8.ValidString(typ) || strings.ContainsRune(typ, 0) {
		return fmt.Errorf("port %s: type %q: %w: want UTF-8 text without NUL", key.Name, typ, podnet.ErrBadRequest)
	}
	return c.change(ctx, ifaceChange{key: key, column: "type", value: typ, is: func(r *ifaceRow) bool { return r.Type == typ }})
}

// SetMTURequest asks Open vSwitch to give the device of a port of type internal
// that MTU in bytes and to keep it. Without, ovs-vswitchd gives it the least MTU of the
// bridge's other ports, again after every change. Nothing is written when it is so; gone: podnet.ErrNoPort.
func (c *Client) SetMTURequest(ctx context.Context, key podnet.PortKey, mtu int) error {
	return c.change(ctx, ifaceChange{key: key, column: "mtu_request", value: mtu, is: func(r *ifaceRow) bool { return value(r.MTURequest) == mtu }})
}

// Reopen makes ovs-vswitchd close the port's device and open it anew: on the
// userspace datapath it goes on reading from a device that was deleted, although
// there is another one of that name. The port gets another number, which is how
// one transaction brings this about: ovs-vswitchd has to take a port out to
// give it the number that is requested.
func (c *Client) Reopen(ctx context.Context, key podnet.PortKey) error {
	var asked int
	return c.change(ctx, ifaceChange{key: key, column: "ofport_request",
		choose: func(t *tables, f found) any { asked = t.freeNumber(f.bridge); return asked },
		is:     func(r *ifaceRow) bool { return asked != 0 && value(r.OFPortRequest) == asked }})
}

// freeNumber returns a number above all that ports of the bridge have or ask
// for, or else the highest that is free.
func (t *tables) freeNumber(b *bridgeRow) int {
	taken, highest := map[int]bool{}, 0
	for _, f := range t.all(b) {
		for _, n := range []int{value(f.iface.OFPort), value(f.iface.OFPortRequest)} {
			if n > 0 && n <= maxOFPort {
				taken[n], highest = true, max(highest, n)
			}
		}
	}
	if highest < maxOFPort {
		return highest + 1
	}
	for n := maxOFPort; n > 1; n-- {
		if !taken[n] {
			return n
		}
	}
	return 1
}

func (c *Client) change(ctx context.Context, change ifaceChange) error {
	if _, err := joined(ctx, c, c.changes, change); err != nil {
		return fmt.Errorf("set %s of port %s on bridge %s: %w", change.column, change.key.Name, c.cfg.Bridge, err)
	}
	return nil
}

func (c *Client) runIfaceChanges(ctx context.Context, changes []ifaceChange) []join.Result[struct{}] {
	changes = append([]ifaceChange(nil), changes...)
	errs := c.commit(ctx, batch{
		kind: "interface", n: len(changes),
		key: func(i int) string {
			if changes[i].choose != nil {
				return "" // two that choose at the same time would choose the same
			}
			return changes[i].key.Name + "/" + changes[i].column
		},
		settle: func(t *tables, i int) (bool, error) {
			f, ok := c.find(t, changes[i].key)
			switch {
			case !ok:
				return false, podnet.ErrNoPort
			case f.iface.Name == c.cfg.Bridge:
				return false, fmt.Errorf("%w: it is the bridge's own port", podnet.ErrBadRequest)
			}
			// From here on this life is meant, even if the caller named none.
			changes[i].key.Gen = f.iface.UUID
			return changes[i].is(f.iface), nil
		},
		plan: func(t *tables, items []int) (ops []ovsdb.Operation, owner []int) {
			for _, i := range items {
				v := changes[i].value
				if changes[i].choose != nil {
					f, _ := c.find(t, changes[i].key)
					v = changes[i].choose(t, f)
				}
				ops = append(ops, ovsdb.Operation{
					Op: ovsdb.OperationUpdate, Table: tableInterface, Where: byUUID(changes[i].key.Gen), Row: ovsdb.Row{changes[i].column: v},
				})
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
