package vswitch

import (
	"context"
	"errors"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// SetHWAddr gives the bridge's own interface that MAC for good (other_config:hwaddr).
// Without, ovs-vswitchd takes the lowest of its ports', of those that are not
// locally administered.
func (c *Client) SetHWAddr(ctx context.Context, mac ifstore.MAC) error {
	for {
		var s *session
		var bridge string
		err := c.await(ctx, "", func(t *tables) (bool, error) {
			b := t.bridge(c.cfg.Bridge)
			if b == nil {
				return false, c.noBridge()
			}
			s, bridge = c.session, b.UUID
			return true, nil
		})
		if err != nil {
			return err
		}
		// An insert leaves a key that is there as it is.
		_, err = s.transact(ctx, "bridge", 1, []ovsdb.Operation{{
			Op: ovsdb.OperationMutate, Table: tableBridge, Where: byUUID(bridge),
			Mutations: []ovsdb.Mutation{
				*ovsdb.NewMutation("other_config", ovsdb.MutateOperationDelete, ovsdb.OvsSet{GoSet: []any{"hwaddr"}}),
				*ovsdb.NewMutation("other_config", ovsdb.MutateOperationInsert, stringMap(map[string]string{"hwaddr": mac.String()})),
			},
		}})
		if !errors.Is(err, podnet.ErrOutcomeUnknown) && !errors.Is(err, podnet.ErrNotConnected) {
			if err != nil {
				err = c.bridgeError(err)
			}
			return err
		}
		<-s.rpc.stopped // the same again does no harm
	}
}
