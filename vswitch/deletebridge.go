package vswitch

import (
	"context"
	"errors"
	"fmt"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/podnet"
)

// DeleteBridge removes the bridge if it has no ports but its own; one with others:
// podnet.ErrPortExists, which names one of them. None there: nil.
func (c *Client) DeleteBridge(ctx context.Context) error {
	for {
		s, ops, err := c.deleteBridgeOps(ctx)
		if err != nil || len(ops) == 0 {
			return err
		}
		_, err = s.transact(ctx, "bridge", 1, ops)
		if err == nil {
			return nil
		}
		if !errors.Is(err, podnet.ErrOutcomeUnknown) && !errors.Is(err, podnet.ErrNotConnected) {
			return c.bridgeError(err)
		}
		<-s.rpc.stopped // the next round looks what came of it
	}
}

func (c *Client) deleteBridgeOps(ctx context.Context) (s *session, ops []ovsdb.Operation, err error) {
	err = c.await(ctx, "", func(t *tables) (bool, error) {
		s = c.session
		b, root := t.bridge(c.cfg.Bridge), t.root()
		if b == nil || root == nil {
			return true, nil
		}
		for _, f := range t.all(b) {
			if f.iface.Name != b.Name {
				return false, fmt.Errorf("bridge %s cannot be deleted: %w: port %s is on it, %s", b.Name, podnet.ErrPortExists, f.iface.Name, owner(f.port.ExternalIDs))
			}
		}
		// The wait fails the transaction if somebody adds a port meanwhile.
		ops = []ovsdb.Operation{{
			Op: ovsdb.OperationWait, Table: tableBridge, Where: byUUID(b.UUID), Columns: []string{"ports"}, Until: "==", Timeout: new(int),
			Rows: []ovsdb.Row{{"ports": ovsdb.OvsSet{GoSet: uuids(b.Ports)}}},
		}, {
			Op: ovsdb.OperationMutate, Table: tableRoot, Where: byUUID(root.UUID),
			Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("bridges", ovsdb.MutateOperationDelete, ovsdb.UUID{GoUUID: b.UUID})},
		}}
		return true, nil
	})
	return s, ops, err
}

func uuids(list []string) []any {
	out := make([]any, len(list))
	for i, u := range list {
		out[i] = ovsdb.UUID{GoUUID: u}
	}
	return out
}
