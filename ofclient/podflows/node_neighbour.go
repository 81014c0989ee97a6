package podflows

import (
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// nodeNeighbour says where ARP and ND go that no Pod's own flow takes. By
// priority: 260 to 240 announcements and answers, 180 the gateway's own
// addresses, 170 what must stay unanswered, 151 to 140 answers in the gateway's
// name, 100 questions that only a VLAN's members can answer. The Pods' flows stand
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

	for _, p := range n.proxied() {
		if p.Addr().Is4() {
			f.arpAnswer(pods(ask, destinations(p, ofp.ARPTPA)...), gw)
		} else {
			// Where the switch cannot answer (see nodeNDAnswers) the host may, if told to be a proxy.
			f.add(TableNeighbour, 140, pods(solicits, destinations(p, ndTargetIn)...), TableOutput, setPort(gw.OFPort))
		}
	}
}

// proxied lists the destinations that are asked of the gateway.
func (n Node) proxied() []netip.Prefix {
	if n.Proxied != nil {
		return n.Proxied
	}
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}

// destinations matches a prefix; the one that holds everything needs no field.
func destinations(p netip.Prefix, field func(netip.Prefix) ofp.Field) []ofp.Field {
	if p.Bits() == 0 {
		return nil
	}
	return []ofp.Field{field(p)}
}

func ndTargetIn(p netip.Prefix) ofp.Field { return inPrefix(ofp.FieldNDTarget, p) }

// nodeNDAnswers builds the flows that answer solicitations in the gateway's
// name. They are a group of their own: the kernel datapath has no way to write
// the flags of an advertisement, so there Open vSwitch refuses them
// (OFPBAC_BAD_SET_ARGUMENT) and the pipeline stands without.
func nodeNDAnswers(n Node, round uint16) []ofp.FlowMod {
	f := &flows{cookie: cookieFor(round, nodeID)}
	if n.Gateway.OFPort == 0 {
		return nil
	}
	for _, p := range n.proxied() {
		if p.Addr().Is6() {
			f.ndAnswer(with(with(solicits, from(fromPod), ofp.VLANNone()), destinations(p, ndTargetIn)...), n.Gateway)
		}
	}
	if len(f.mods) > 0 {
		f.add(TableNDAnswer, 200, adverts, end, set(ofp.NDTLL(n.Gateway.MAC)), ofp.Output{Port: ofp.PortInPort})
	}
	return f.mods
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
