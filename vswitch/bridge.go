package vswitch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/podnet"
)

// needed is the protocol our flows speak; the others are for ovs-ofctl and friends.
const needed = "OpenFlow15"

// ErrDatapathType: the bridge exists with the other datapath type. Waiting
// does not help; somebody has to change the configuration or delete the bridge.
var ErrDatapathType = errors.New("wrong datapath type")

func defaultProtocols() []any { return []any{"OpenFlow10", "OpenFlow13", needed} }

// BridgeInfo describes the bridge after EnsureBridge.
type BridgeInfo struct {
	UUID       string // of the Bridge row
	DatapathID uint64
	Datapath   string // "system" or "netdev"
	Created    bool   // by this call
}

// EnsureBridge makes the bridge, or makes an existing one fit: fail_mode
// secure (standalone, if so configured) and OpenFlow 1.5 among the protocols, each written only when it differs
// (a change of protocols closes every OpenFlow session). Ports and settings of
// others stay. It waits for the datapath id, which ovs-vswitchd gives.
// A bridge of the other datapath type: ErrDatapathType.
func (c *Client) EnsureBridge(ctx context.Context) (BridgeInfo, error) {
	var info BridgeInfo
	for overtaken := false; ; {
		s, ops, created, err := c.bridgeOps(ctx)
		if err != nil {
			return info, c.bridgeError(err)
		}
		if len(ops) == 0 {
			return c.waitBridge(ctx, info)
		}
		_, err = s.transact(ctx, "bridge", 1, ops)
		switch {
		case err == nil:
			info.Created = info.Created || created
		case errors.Is(err, podnet.ErrOutcomeUnknown), errors.Is(err, podnet.ErrNotConnected):
			<-s.rpc.stopped // the next round looks what came of it
		case created && !overtaken && errors.Is(duplicate(err), podnet.ErrPortExists):
			overtaken = true // somebody made it a moment before us: the next round looks at theirs
		default:
			return info, c.bridgeError(err)
		}
	}
}

func (c *Client) bridgeError(err error) error {
	return fmt.Errorf("bridge %s: %w", c.cfg.Bridge, err)
}

// bridgeOps compares the bridge with what we need; no operations: it fits.
func (c *Client) bridgeOps(ctx context.Context) (s *session, ops []ovsdb.Operation, create bool, err error) {
	err = c.await(ctx, "", func(t *tables) (bool, error) {
		var err error
		s = c.session
		ops, create, err = c.compareBridge(t)
		return true, err
	})
	return s, ops, create, err
}

func (c *Client) compareBridge(t *tables) (ops []ovsdb.Operation, create bool, err error) {
	b := t.bridge(c.cfg.Bridge)
	if b == nil {
		ops, err := c.createBridge(t)
		return ops, true, err
	}
	if have := datapath(b.DatapathType); have != c.cfg.Datapath {
		return nil, false, fmt.Errorf("%w: it exists with datapath_type %q, the configuration says %q: change the configuration, or delete the bridge (ovs-vsctl del-br %s) and let the agent make it",
			ErrDatapathType, have, c.cfg.Datapath, c.cfg.Bridge)
	}
	if value(b.FailMode) != c.cfg.failMode() {
		ops = append(ops, ovsdb.Operation{
			Op: ovsdb.OperationUpdate, Table: tableBridge, Where: byUUID(b.UUID), Row: ovsdb.Row{"fail_mode": c.cfg.failMode()},
		})
	}
	if !slices.Contains(b.Protocols, needed) {
		add := []any{needed}
		if len(b.Protocols) == 0 {
			// Empty means a default set; naming one alone would forbid the rest.
			add = defaultProtocols()
		}
		ops = append(ops, ovsdb.Operation{
			Op: ovsdb.OperationMutate, Table: tableBridge, Where: byUUID(b.UUID),
			Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("protocols", ovsdb.MutateOperationInsert, ovsdb.OvsSet{GoSet: add})},
		})
	}
	return ops, false, nil
}

// datapath gives the empty datapath_type its name.
func datapath(t string) string {
	if t == "" {
		return "system"
	}
	return t
}

// createBridge makes the bridge with its own port, as every bridge has one.
func (c *Client) createBridge(t *tables) ([]ovsdb.Operation, error) {
	root := t.root()
	if root == nil {
		return nil, errors.New("the Open vSwitch database is empty: start ovs-vswitchd with ovs-ctl, or run ovs-vsctl init")
	}
	if gen, taken := t.byName[c.cfg.Bridge]; taken {
		f, _ := t.byGen(gen)
		return nil, fmt.Errorf("a port has its name: %w", portExists(gen, f))
	}
	local := addition{
		port:  podnet.Port{PortKey: podnet.PortKey{Name: c.cfg.Bridge}, Type: "internal"},
		iface: uuid.NewString(), row: uuid.NewString(),
	}
	bridge := ovsdb.UUID{GoUUID: uuid.NewString()}
	return append(local.inserts(), ovsdb.Operation{
		Op: ovsdb.OperationInsert, Table: tableBridge, UUID: bridge.GoUUID, Row: ovsdb.Row{
			"name": c.cfg.Bridge, "ports": ovsdb.UUID{GoUUID: local.row}, "datapath_type": c.cfg.Datapath,
			"fail_mode": c.cfg.failMode(), "protocols": ovsdb.OvsSet{GoSet: defaultProtocols()},
		},
	}, ovsdb.Operation{
		Op: ovsdb.OperationMutate, Table: tableRoot, Where: byUUID(root.UUID),
		Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("bridges", ovsdb.MutateOperationInsert, bridge)},
	}), nil
}

// waitBridge waits until ovs-vswitchd has made the bridge.
func (c *Client) waitBridge(ctx context.Context, info BridgeInfo) (BridgeInfo, error) {
	err := c.await(ctx, "", func(t *tables) (bool, error) {
		b := t.bridge(c.cfg.Bridge)
		if b == nil {
			return false, c.noBridge()
		}
		info.UUID, info.Datapath = b.UUID, datapath(b.DatapathType)
		return true, nil
	})
	if err != nil {
		return info, c.bridgeError(err)
	}
	err = c.await(ctx, info.UUID, func(t *tables) (bool, error) {
		b, _ := t.rows[tableBridge][info.UUID].(*bridgeRow)
		if b == nil {
			return false, errors.New("it was deleted while it was set up")
		}
		id := value(b.DatapathID)
		if id == "" {
			return false, nil
		}
		var err error
		info.DatapathID, err = strconv.ParseUint(id, 16, 64)
		return true, err
	})
	if err != nil {
		return info, c.bridgeError(fmt.Errorf("no datapath id yet (is ovs-vswitchd running? its log says why it cannot make a datapath of type %s): %w", info.Datapath, err))
	}
	return info, nil
}
