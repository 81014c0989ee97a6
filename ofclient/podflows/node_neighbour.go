package podflows

import (
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// nodeNeighbour says where ARP and ND go that no Pod's own flow takes. By
// priority: 260 to 240 announcements and answers, 180 the gateway's own
// addresses, 170 what must stay unanswered, 150 answers in the gateway's name,
// 100 questions that only a VLAN's members can answer. The Pods' flows stand
// between 235 and 200.
func (f *flows) nodeNeighbour(n Node) {
	f.neighbourAnnouncements(n.Gateway)
	if n.Gateway.OFPort != 0 {
		f.neighbourGateway(n)
	}
	// In a VLAN, and among interfaces without addresses, nobody knows the owner.
	for _, ask := range []ofp.Match{with(arpFrames, ofp.ARPOp(arpRequest)), solicits} {
		f.add(TableNeighbour, 100, with(ask, ofp.VLANTagged()), TableFlood)
		f.add(TableNeighbour, 100, with(ask, from(fromL2)), TableFlood)
	}
}

func (f *flows) neighbourAnnouncements(gw Gateway) {
	anyone := netip.IPv4Unspecified()
	// Probes (RFC 5227) and duplicate address detection (RFC 4862): all may
	// hear them, so that a real owner can object; the switch never answers.
	f.add(TableNeighbour, 260, with(arpFrames, ofp.ARPSPA(host(anyone))), TableFlood)
	f.add(TableNeighbour, 260, with(solicits, ofp.IPv6Src(host(netip.IPv6Unspecified()))), TableFlood)
	for _, answer := range []ofp.Match{with(arpFrames, ofp.ARPOp(arpReply)), adverts} {
		f.add(TableNeighbour, 250, with(answer, groupDst), TableFlood)
		f.add(TableNeighbour, 240, answer, TableSwitching)
	}
	for _, a := range gw.Addrs {
		if a.Is4() && gw.OFPort != 0 { // the gateway's own gratuitous ARP
			f.add(TableNeighbour, 235, with(arpFrames, from(fromGateway), ofp.ARPOp(arpRequest), ofp.ARPTPA(host(a))), TableFlood)
		}
	}
}

func (f *flows) neighbourGateway(n Node) {
	gw := n.Gateway
	pods := func(m ofp.Match, more ...ofp.Field) ofp.Match {
		return with(with(m, from(fromPod), ofp.VLANNone()), more...)
	}
	ask := with(arpFrames, ofp.ARPOp(arpRequest))
	own := append([]netip.Addr{derivedLinkLocal(gw.MAC)}, gw.Addrs...)
	for i, a := range own {
		switch {
		case a.Is4():
			f.add(TableNeighbour, 180, pods(ask, ofp.ARPTPA(host(a))), TableOutput, setPort(gw.OFPort))
		case i == 0 || a != own[0]:
			f.add(TableNeighbour, 180, pods(solicits, ofp.NDTarget(a)), TableOutput, setPort(gw.OFPort))
		}
	}
	for _, p := range n.PodCIDRs {
		if p.Addr().Is4() {
			f.drop(TableNeighbour, 170, pods(ask, ofp.ARPTPA(p)))
		} else {
			f.drop(TableNeighbour, 170, pods(solicits, inPrefix(ofp.FieldNDTarget, p)))
		}
	}
	f.drop(TableNeighbour, 170, pods(solicits, anyLinkLocal(ofp.FieldNDTarget)))

	proxied := n.Proxied
	if proxied == nil {
		proxied = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	}
	for _, p := range proxied {
		switch {
		case p.Addr().Is4() && p.Bits() == 0:
			f.arpAnswer(pods(ask), gw)
		case p.Addr().Is4():
			f.arpAnswer(pods(ask, ofp.ARPTPA(p)), gw)
		case p.Bits() == 0:
			f.ndAnswer(pods(solicits), gw)
		default:
			f.ndAnswer(pods(solicits, inPrefix(ofp.FieldNDTarget, p)), gw)
		}
	}
	f.add(TableNDAnswer, 200, adverts, end, set(ofp.NDTLL(gw.MAC)), ofp.Output{Port: ofp.PortInPort})
}

// arpAnswer turns a request into its answer and sends it back. The two protocol
// addresses change places by way of a register.
func (f *flows) arpAnswer(ask ofp.Match, gw Gateway) {
	f.add(TableNeighbour, 150, ask, end,
		move(ofp.FieldEthSrc, ofp.FieldEthDst), set(ofp.EthSrc(gw.MAC)),
		set(ofp.ARPOp(arpReply)),
		move(ofp.FieldARPSHA, ofp.FieldARPTHA), set(ofp.ARPSHA(gw.MAC)),
		move(ofp.FieldARPTPA, ofp.RegID(regSwap)), move(ofp.FieldARPSPA, ofp.FieldARPTPA), move(ofp.RegID(regSwap), ofp.FieldARPSPA),
		ofp.Output{Port: ofp.PortInPort})
}

// ndAnswer turns a solicitation into an advertisement. OVS refuses nd_tll in a
// flow that matches icmp_type=135, so the MAC is written one table later (fact
// 33); with one table the answer would carry the asker's own. Solicited and
// override are set: a neighbour that moved to this node or away is then
// corrected by the next answer.
//
// A solicitation without an option (a unicast probe may lack it) gets an
// advertisement without one: OVS would write the option's type behind the end
// of the message.
func (f *flows) ndAnswer(ask ofp.Match, gw Gateway) {
	turn := []ofp.Action{
		move(ofp.FieldEthSrc, ofp.FieldEthDst), set(ofp.EthSrc(gw.MAC)),
		move(ofp.FieldIPv6Src, ofp.FieldIPv6Dst), move(ofp.FieldNDTarget, ofp.FieldIPv6Src),
		set(ofp.ICMPv6Type(icmpv6NeighbourAdv)), set(ofp.NDReserved(ndSolicitedOverride)),
	}
	f.add(TableNeighbour, 150, ask, TableNDAnswer, append(slices.Clone(turn), set(ofp.NDOptionsType(ndOptionTargetLLAddr)))...)
	f.add(TableNeighbour, 151, with(ask, ofp.NDSLL([6]byte{})), end, append(turn, ofp.Output{Port: ofp.PortInPort})...)
}
