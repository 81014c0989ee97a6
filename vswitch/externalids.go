package vswitch

import (
	"context"
	"fmt"
	"time"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

type idChange struct {
	key podnet.PortKey
	ids map[string]string
}

// SetExternalIDs merges ids into the external_ids of the port's row; an empty
// value removes its key. Nothing is written when nothing would change. Gone:
// podnet.ErrNoPort. A transaction that ctx left behind still happens.
func (c *Client) SetExternalIDs(ctx context.Context, key podnet.PortKey, ids map[string]string) error {
	if err := checkText(key.Name, ids); err != nil {
		return err
	}
	if _, err := joined(ctx, c, c.sets, idChange{key, ids}); err != nil {
		return fmt.Errorf("set external_ids of port %s on bridge %s: %w", key.Name, c.cfg.Bridge, err)
	}
	return nil
}

func (c *Client) runIDChanges(ctx context.Context, sets []idChange) []join.Result[struct{}] {
	errs := c.commit(ctx, batch{
		kind: "external_ids", n: len(sets),
		key: func(i int) string { return sets[i].key.Name },
		settle: func(t *tables, i int) (bool, error) {
			f, ok := c.find(t, sets[i].key)
			if !ok {
				return false, podnet.ErrNoPort
			}
			drop, put := idDiff(f.port.ExternalIDs, sets[i].ids)
			return len(drop)+len(put) == 0, nil
		},
		plan: func(t *tables, items []int) (ops []ovsdb.Operation, owner []int) {
			for _, i := range items {
				f, _ := c.find(t, sets[i].key)
				ops = append(ops, mutateIDs(f.port, sets[i].ids))
			}
			return ops, items
		},
		gone: podnet.ErrNoPort,
	})
	results := make([]join.Result[struct{}], len(sets))
	for i, err := range errs {
		results[i].Err = err
	}
	return results
}

// idDiff splits a merge into the keys to remove and the pairs to insert. A pair
// whose key is there with another value is in both: insert alone would keep the old value.
func idDiff(have, want map[string]string) (drop []any, put map[string]string) {
	put = map[string]string{}
	for k, v := range want {
		old, is := have[k]
		if is && old != v {
			drop = append(drop, k)
		}
		if v != "" && (!is || old != v) {
			put[k] = v
		}
	}
	return drop, put
}

func mutateIDs(p *portRow, want map[string]string) ovsdb.Operation {
	drop, put := idDiff(p.ExternalIDs, want)
	var ms []ovsdb.Mutation
	if len(drop) > 0 {
		ms = append(ms, *ovsdb.NewMutation("external_ids", ovsdb.MutateOperationDelete, ovsdb.OvsSet{GoSet: drop}))
	}
	if len(put) > 0 {
		ms = append(ms, *ovsdb.NewMutation("external_ids", ovsdb.MutateOperationInsert, stringMap(put)))
	}
	return ovsdb.Operation{Op: ovsdb.OperationMutate, Table: tablePort, Where: byUUID(p.UUID), Mutations: ms}
}

// nudgedID is the external_ids key that Nudge rewrites.
const nudgedID = "podnet-nudged"

// Nudge makes ovs-vswitchd try again to open a port's device, for an error that
// stands although its cause is gone: on any change of its configuration
// ovs-vswitchd looks at every port again. The change is the time of the nudge in the
// port's external_ids. Callers pace it; it is never sent by itself.
func (c *Client) Nudge(ctx context.Context, key podnet.PortKey) error {
	return c.SetExternalIDs(ctx, key, map[string]string{nudgedID: time.Now().UTC().Format(time.RFC3339Nano)})
}
