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

type typeChange struct {
	key podnet.PortKey
	typ string
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
	if _, err := joined(ctx, c, c.types, typeChange{key, typ}); err != nil {
		return fmt.Errorf("set type %q of port %s on bridge %s: %w", typ, key.Name, c.cfg.Bridge, err)
	}
	return nil
}

func (c *Client) runTypeChanges(ctx context.Context, changes []typeChange) []join.Result[struct{}] {
	changes = append([]typeChange(nil), changes...)
	errs := c.commit(ctx, batch{
		kind: "type", n: len(changes),
		key: func(i int) string { return changes[i].key.Name },
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
			return f.iface.Type == changes[i].typ, nil
		},
		plan: func(t *tables, items []int) (ops []ovsdb.Operation, owner []int) {
			for _, i := range items {
				ops = append(ops, ovsdb.Operation{
					Op: ovsdb.OperationUpdate, Table: tableInterface, Where: byUUID(changes[i].key.Gen), Row: ovsdb.Row{"type": changes[i].typ},
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
