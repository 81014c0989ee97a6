package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/level"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/nodenet"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
)

// tunnelName is the bridge's port to all other nodes.
const tunnelName = "antrea-tun0"

// tunnel is what the keeper needs to know of the other nodes in encap mode.
type tunnel struct {
	port  vswitch.Tunnel
	peers func() []podflows.Peer
	// uplink finds the interface that holds the node's address. On the userspace
	// datapath it has to be Open vSwitch's own; nil: it may be any.
	uplink func() (nodenet.Uplink, error)
	moving bool // somebody is moving the node's address there
}

// checkUplink refuses what would drop every packet without a word: in userspace
// a tunnel's packets leave only by a bridge that holds the node's address (fact 35).
func (t *tunnel) checkUplink(ctx context.Context, ovs *vswitch.Client) error {
	if t.uplink == nil {
		return nil
	}
	uplink, err := t.uplink()
	if err != nil {
		return err
	}
	bridge, err := ovs.InternalPortOf(ctx, uplink.Name)
	if err != nil {
		return err
	}
	if bridge == "" && t.moving {
		return fmt.Errorf("interface %s has the node's address still and is to be moved behind Open vSwitch (traffic.prepareUplink)", uplink.Name)
	}
	if bridge == "" {
		return level.Permanent(fmt.Errorf("traffic.mode encap on the userspace datapath: interface %s, which has the node's address, is no port that Open vSwitch makes, and the tunnel's packets would all be dropped: "+
			"make a bridge of datapath_type netdev, put %s into it and move the address to the bridge's own interface, which traffic.prepareUplink: true does (look first: antrea-lite prepare-uplink --dry-run); or use datapath system, or traffic.mode noEncap", uplink.Name, uplink.Name))
	}
	return nil
}

// newTunnel describes a port whose flows name the other end.
func newTunnel(kind string, peers func() []podflows.Peer) *tunnel {
	return &tunnel{peers: peers, port: vswitch.Tunnel{Name: tunnelName, Type: kind,
		Options:     map[string]string{"remote_ip": "flow", "key": "0"},
		ExternalIDs: map[string]string{"podnet-owner": tunnelOwner, "antrea-type": "tunnel"}}}
}

// tunnelOwner differs from the Pods' mark: podnet reads every port with that.
const tunnelOwner = "antrea-lite-tunnel"

// ensureTunnel makes the tunnel's port, and returns the tunnel as the pipeline
// has to know it; without encap mode there is none, and that of an agent before
// this one goes. ports is what the bridge has.
func (k *keeper) ensureTunnel(ctx context.Context, ports []podnet.Port) (podflows.Tunnel, error) {
	if k.tunnel == nil {
		for _, p := range ports {
			if p.Name == tunnelName && p.ExternalIDs["podnet-owner"] == tunnelOwner {
				return podflows.Tunnel{}, k.ovs.DeletePort(ctx, p.PortKey)
			}
		}
		return podflows.Tunnel{}, nil
	}
	if err := k.tunnel.checkUplink(ctx, k.ovs); err != nil {
		return podflows.Tunnel{}, err
	}
	key, err := k.ovs.EnsureTunnelPort(ctx, k.tunnel.port)
	if err != nil {
		if errors.Is(err, podnet.ErrPortExists) {
			err = level.Permanent(err)
		}
		return podflows.Tunnel{}, err
	}
	ofport, err := k.ovs.WaitOFPort(ctx, key)
	if err != nil {
		return podflows.Tunnel{}, fmt.Errorf("tunnel: %w", err)
	}
	return podflows.Tunnel{OFPort: ofport, Peers: k.tunnel.peers()}, nil
}
