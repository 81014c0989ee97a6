package podflows

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

// Node is what the pipeline must know beside the Pods.
type Node struct {
	Gateway Gateway
	// PodCIDRs are this node's own. Nobody but local Pods has addresses in
	// them, so a question for one that no Pod has stays without answer; and
	// interfaces without addresses may not send from them.
	PodCIDRs []netip.Prefix
	// Proxied are the destinations for which an untagged Pod's ARP or ND is
	// answered with the gateway's MAC, besides PodCIDRs never and the
	// gateway's own addresses always. Nil: every other address, which suits
	// Pods whose subnet spans nodes. Non-nil and empty: none.
	Proxied []netip.Prefix
	// Tunnel leads to the Pods of other nodes. With the zero Tunnel they are
	// reached through the gateway, by the host's routes.
	Tunnel Tunnel
}

// Gateway is the node's own port in the Pods' untagged network. OFPort 0: there is
// none; Pods then reach each other only.
type Gateway struct {
	OFPort uint32
	MAC    ifstore.MAC
	Addrs  []netip.Addr
}

// clone copies what the caller may change afterwards.
func (n Node) clone() Node {
	n.Gateway.Addrs = slices.Clone(n.Gateway.Addrs)
	n.PodCIDRs = slices.Clone(n.PodCIDRs)
	n.Proxied = slices.Clone(n.Proxied)
	n.Tunnel = n.Tunnel.clone()
	return n
}

// validate returns the node with prefixes masked.
func (n Node) validate() (_ Node, err error) {
	n = n.clone()
	if n.Gateway.OFPort != 0 {
		if err := checkPort(n.Gateway.OFPort); err != nil {
			return Node{}, fmt.Errorf("gateway: %w", err)
		}
		if err := checkMAC(n.Gateway.MAC); err != nil {
			return Node{}, fmt.Errorf("gateway: %w", err)
		}
	}
	for _, a := range n.Gateway.Addrs {
		if err := checkAddr(a); err != nil {
			return Node{}, fmt.Errorf("gateway: %w", err)
		}
	}
	for _, list := range [][]netip.Prefix{n.PodCIDRs, n.Proxied} {
		for i, p := range list {
			if !p.IsValid() || p.Addr().Is4In6() {
				return Node{}, fmt.Errorf("prefix %v: %w: want an IPv4 or IPv6 prefix such as 10.10.0.0/24", p, podnet.ErrBadRequest)
			}
			list[i] = p.Masked()
		}
	}
	for _, p := range n.PodCIDRs {
		if p.Bits() == 0 {
			return Node{}, fmt.Errorf("prefix %v of PodCIDRs: %w: it holds every address; name this node's own", p, podnet.ErrBadRequest)
		}
	}
	if n.Tunnel, err = n.Tunnel.validate(n); err != nil {
		return Node{}, fmt.Errorf("tunnel: %w", err)
	}
	return n, nil
}

// nodeFlows builds the flows that do not belong to one Pod.
func nodeFlows(n Node, round uint16) []ofp.FlowMod {
	f := &flows{cookie: cookieFor(round, nodeID)}
	f.nodeMisses()
	f.nodeScreen()
	f.nodeGuard(n)
	f.nodeDispatch(n.Gateway)
	f.nodeNeighbour(n)
	f.nodeTracking(n.Gateway)
	f.nodeForwarding(n.Gateway)
	f.nodeTunnel(n)
	return f.mods
}

// nodeMisses writes the flow of priority 0 into every table. OVS drops without
// one too; written out, its counter tells where packets end.
func (f *flows) nodeMisses() {
	for _, r := range rows {
		if r.miss != r.id {
			f.add(r.id, 0, nil, r.miss)
		}
	}
}

// nodeScreen drops what only a router or a DHCP server may say, and sends ARP
// and ND to their own guard. VLAN tags never come this far: the Classifier takes
// untagged frames from Pods only.
func (f *flows) nodeScreen() {
	for _, m := range []ofp.Match{
		icmpv6(icmpv6RouterAdvert),
		icmpv6(icmpv6Redirect),
		udp(etherTypeIPv4, dhcpv4Server, dhcpv4Client),
		udp(etherTypeIPv6, dhcpv6Server, dhcpv6Client),
	} {
		f.drop(TableScreen, 300, m)
	}
	for _, m := range []ofp.Match{arpFrames, icmpv6(icmpv6NeighbourSol), icmpv6(icmpv6NeighbourAdv)} {
		f.add(TableScreen, 200, m, TableNeighbourGuard)
	}
}

// nodeGuard holds the parts of the guards that are the same for all Pods.
func (f *flows) nodeGuard(n Node) {
	unspecified := ofp.NDTarget(netip.IPv6Unspecified())
	for _, m := range []ofp.Match{solicits, adverts} {
		// OVS shows the target as :: when it cannot read the message.
		f.drop(TableNeighbourGuard, 320, with(m, unspecified))
	}
	// A solicitation without the option claims no MAC; its source is checked next.
	f.add(TableNeighbourGuard, 100, with(solicits, from(fromPod), ofp.NDSLL([6]byte{})), TableSourceGuard)

	// Derived link-local addresses belong to their MAC. The Pods' flows for
	// their own stand above, those for the drawn ones below.
	f.drop(TableNeighbourGuard, 210, with(adverts, derivedShape(ofp.FieldNDTarget)))
	f.drop(TableNeighbourGuard, 215, with(solicits, ofp.IPv6Src(host(netip.IPv6Unspecified())), derivedShape(ofp.FieldNDTarget)))
	f.drop(TableSourceGuard, 210, with(ipv6Frames, derivedShape(ofp.FieldIPv6Src)))
	for _, a := range n.Gateway.Addrs {
		if a.Is6() && a.IsLinkLocalUnicast() {
			f.drop(TableNeighbourGuard, 310, with(adverts, ofp.NDTarget(a)))
			f.drop(TableSourceGuard, 310, with(ipv6Frames, ofp.IPv6Src(host(a))))
		}
	}

	// Nothing tells which addresses an interface without any may use; those
	// that are given to others it may not.
	taken := slices.Clone(n.PodCIDRs)
	for _, a := range n.Gateway.Addrs {
		taken = append(taken, host(a))
	}
	for _, p := range taken {
		if p.Addr().Is4() {
			f.drop(TableNeighbourGuard, 310, with(arpFrames, from(fromL2), ofp.ARPSPA(p)))
			f.drop(TableNeighbourGuard, 311, with(arpFrames, from(fromL2), ofp.ARPSPA(host(netip.IPv4Unspecified())), ofp.ARPTPA(p)))
			f.drop(TableSourceGuard, 310, with(ipv4Frames, from(fromL2), ofp.IPv4Src(p)))
		} else {
			f.drop(TableNeighbourGuard, 310, with(adverts, from(fromL2), inPrefix(ofp.FieldNDTarget, p)))
			f.drop(TableNeighbourGuard, 311, with(solicits, from(fromL2), ofp.IPv6Src(host(netip.IPv6Unspecified())), inPrefix(ofp.FieldNDTarget, p)))
			f.drop(TableSourceGuard, 310, with(ipv6Frames, from(fromL2), ofp.IPv6Src(p)))
		}
	}
	f.drop(TableSourceGuard, 310, with(ipv4Frames, from(fromL2), ofp.IPv4Src(netip.MustParsePrefix("224.0.0.0/4"))))
	f.drop(TableSourceGuard, 310, with(ipv6Frames, from(fromL2), ofp.IPv6Src(netip.MustParsePrefix("ff00::/8"))))
}

// nodeDispatch parts the packets that passed the guards, and the gateway's.
func (f *flows) nodeDispatch(gw Gateway) {
	for _, m := range []ofp.Match{arpFrames, icmpv6(icmpv6NeighbourSol), icmpv6(icmpv6NeighbourAdv)} {
		f.add(TableDispatch, 300, m, TableNeighbour)
	}
	f.add(TableDispatch, 250, ofp.Match{groupDst}, TableEgressPolicy)
	for _, ip := range ipFrames {
		if gw.OFPort != 0 {
			f.add(TableDispatch, 220, with(ip, from(fromPod), ofp.VLANNone(), ofp.EthDst(gw.MAC)), TableConntrack, setFact(factRouted, factRouted))
			f.add(TableDispatch, 210, with(ip, from(fromGateway)), TableConntrack)
		}
		f.add(TableDispatch, 210, with(ip, from(fromPod), ofp.VLANNone()), TableConntrack)
	}
	f.add(TableDispatch, 200, ofp.Match{ofp.VLANTagged()}, TableEgressPolicy)
	f.add(TableDispatch, 200, ofp.Match{from(fromL2)}, TableEgressPolicy)
}
