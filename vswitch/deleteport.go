package vswitch

import (
	"context"
	"fmt"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

// DeletePort removes that life of the port; another life of the name is never
// touched. Gone already: nil. A transaction that ctx left behind still happens.
func (c *Client) DeletePort(ctx context.Context, key podnet.PortKey) error {
	if _, err := joined(ctx, c, c.dels, key); err != nil {
		return fmt.Errorf("delete port %s of bridge %s: %w", key.Name, c.cfg.Bridge, err)
	}
	return nil
}

func (c *Client) runDeletes(ctx context.Context, keys []podnet.PortKey) []join.Result[struct{}] {
	keys = append([]podnet.PortKey(nil), keys...)
	errs := c.commit(ctx, batch{
		kind: "delete", n: len(keys),
		key: func(i int) string { return keys[i].Gen },
		settle: func(t *tables, i int) (bool, error) {
			f, ok := c.find(t, keys[i])
			switch {
			case !ok:
				return true, nil
			case f.iface.Name == c.cfg.Bridge:
				return false, fmt.Errorf("%w: it is the bridge's own port", podnet.ErrBadRequest)
			case len(f.port.Interfaces) > 1:
				return false, fmt.Errorf("%w: it is part of bond %s", podnet.ErrBadRequest, f.port.Name)
			}
			// From here on this life is meant, even if the caller named none
			// and the name comes to a new one before a second attempt.
			keys[i].Gen = f.iface.UUID
			return false, nil
		},
		plan: func(t *tables, items []int) ([]ovsdb.Operation, []int) {
			rows := make([]any, 0, len(items))
			for _, i := range items {
				rows = append(rows, ovsdb.UUID{GoUUID: t.portOf[keys[i].Gen]})
			}
			// Rows of Port and Interface go by themselves once nothing refers to them.
			return []ovsdb.Operation{mutatePorts(t.bridge(c.cfg.Bridge).UUID, ovsdb.MutateOperationDelete, rows)}, []int{-1}
		},
	})
	results := make([]join.Result[struct{}], len(keys))
	for i, err := range errs {
		results[i].Err = err
	}
	return results
}

// find resolves a key on our bridge.
func (c *Client) find(t *tables, key podnet.PortKey) (found, bool) {
	gen := key.Gen
	if gen == "" {
		gen = t.byName[key.Name]
	}
	f, ok := t.byGen(gen)
	return f, ok && f.bridge != nil && f.bridge.Name == c.cfg.Bridge
}
