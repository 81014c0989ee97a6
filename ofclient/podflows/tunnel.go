package podflows

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

// Tunnel joins the nodes' pipelines: one port for all of them, whose flows name
// the other end (remote_ip=flow). OFPort 0: there is none.
type Tunnel struct {
	OFPort uint32
	Peers  []Peer
}

// Peer is another node.
type Peer struct {
	Addr     netip.Addr     // its end of the tunnel
	PodCIDRs []netip.Prefix // of its Pods and its gateway
}

func (t Tunnel) clone() Tunnel {
	t.Peers = slices.Clone(t.Peers)
	for i := range t.Peers {
		t.Peers[i].PodCIDRs = slices.Clone(t.Peers[i].PodCIDRs)
	}
	return t
}

// validate refuses what would send a Pod's traffic to the wrong node. It is
// called on a clone and masks its prefixes.
func (t Tunnel) validate(n Node) (Tunnel, error) {
	if t.OFPort == 0 {
		if len(t.Peers) > 0 {
			return t, fmt.Errorf("%d peers and no port: %w", len(t.Peers), podnet.ErrBadRequest)
		}
		return t, nil
	}
	if err := checkPort(t.OFPort); err != nil {
		return t, err
	}
	if n.Gateway.OFPort == 0 {
		return t, fmt.Errorf("%w: routing to other nodes needs the gateway's MAC address", podnet.ErrBadRequest)
	}
	taken := slices.Clone(n.PodCIDRs)
	for _, p := range t.Peers {
		if err := checkAddr(p.Addr); err != nil {
			return t, fmt.Errorf("peer: %w", err)
		}
		for i, cidr := range p.PodCIDRs {
			if !cidr.IsValid() || cidr.Addr().Is4In6() || cidr.Bits() == 0 {
				return t, fmt.Errorf("peer %s: prefix %v: %w: want the range of its Pods", p.Addr, cidr, podnet.ErrBadRequest)
			}
			for _, other := range taken {
				if cidr.Overlaps(other) {
					return t, fmt.Errorf("peer %s: range %s overlaps %s: %w: each node needs a range of its own", p.Addr, cidr, other, podnet.ErrBadRequest)
				}
			}
			p.PodCIDRs[i] = cidr.Masked()
			taken = append(taken, cidr.Masked())
		}
	}
	return t, nil
}

// remoteMAC is the destination of every frame in a tunnel. The other end goes by
// IP; the address need only be valid, and the same everywhere so that frames of
// any two nodes look alike.
func remoteMAC() [6]byte { return [6]byte{0x0e, 0x70, 0x6f, 0x64, 0x6e, 0x74} }

// nodeTunnel sends packets for other nodes' ranges into the tunnel and lets in
// what comes from them: only from a peer's own ranges and its own end, and only
// to this node's ranges.
func (f *flows) nodeTunnel(n Node) {
	t := n.Tunnel
	if t.OFPort == 0 {
		return
	}
	for _, ip := range ipFrames {
		f.turnReplies(ip, fromTunnel)
		f.commit(ip, fromTunnel)
		// Neither to another peer nor out of the node: who tunnels is no transit.
		f.drop(TableRouting, 110, with(ip, from(fromTunnel)))
	}
	for _, cidr := range n.PodCIDRs {
		f.add(TableRouting, 120, with(dstIn(cidr), from(fromTunnel)), TableIngressPolicy, set(ofp.EthDst(n.Gateway.MAC)), setPort(n.Gateway.OFPort))
	}
	for _, p := range t.Peers {
		for _, cidr := range p.PodCIDRs {
			f.add(TableClassifier, 200, with(ofp.Match{ofp.InPort(t.OFPort), ofp.VLANNone(), ofp.TunSrc(p.Addr)}, srcIn(cidr)...), TableConntrack,
				setFact(fromTunnel|factRouted, fromMask|factRouted))
			out := []ofp.Action{set(ofp.EthDst(remoteMAC())), set(ofp.TunDst(p.Addr)), setPort(t.OFPort)}
			f.add(TableRouting, 190, with(dstIn(cidr), ofp.Reg(regFacts, fromPod|factRouted, fromMask|factRouted)), TableRouted, out...)
			// The host has routed it already.
			f.add(TableRouting, 190, with(dstIn(cidr), from(fromGateway)), TableIngressPolicy, out...)
		}
	}
}

func dstIn(p netip.Prefix) ofp.Match {
	if p.Addr().Is4() {
		return with(ipv4Frames, ofp.IPv4Dst(p))
	}
	return with(ipv6Frames, ofp.IPv6Dst(p))
}

func srcIn(p netip.Prefix) ofp.Match {
	if p.Addr().Is4() {
		return with(ipv4Frames, ofp.IPv4Src(p))
	}
	return with(ipv6Frames, ofp.IPv6Src(p))
}
