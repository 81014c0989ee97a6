package agent

import (
	"context"
	"errors"
	"fmt"

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
// has to know it; without encap mode there is none.
func (k *keeper) ensureTunnel(ctx context.Context) (podflows.Tunnel, error) {
	if k.tunnel == nil {
		return podflows.Tunnel{}, nil
	}
	key, err := k.ovs.EnsureTunnelPort(ctx, k.tunnel.port)
	if err != nil {
		if errors.Is(err, podnet.ErrPortExists) {
			err = permanentError{err}
		}
		return podflows.Tunnel{}, err
	}
	ofport, err := k.ovs.WaitOFPort(ctx, key)
	if err != nil {
		return podflows.Tunnel{}, fmt.Errorf("tunnel: %w", err)
	}
	return podflows.Tunnel{OFPort: ofport, Peers: k.tunnel.peers()}, nil
}
