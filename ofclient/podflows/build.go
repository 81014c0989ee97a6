package podflows

import (
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// Registers. Register 0 holds facts about the packet, register 1 the port it
// goes to, register 5 how far a flood has come, register 6 is scratch.
const (
	regFacts = 0
	regPort  = 1
	regFlood = 5
	regSwap  = 6
)

// Facts in register 0.
const (
	fromMask    uint32 = 0xf
	fromGateway uint32 = 1
	fromPod     uint32 = 2    // an interface with addresses
	fromL2      uint32 = 3    // an interface without addresses
	fromTunnel  uint32 = 4    // a Pod or the gateway of another node
	factReply   uint32 = 0x10 // reply of a connection that the gateway began
	factRouted  uint32 = 0x20 // sent to the gateway's MAC: go by IP, not by MAC
)

// Conntrack. Only untagged traffic is tracked: connections that come in by the
// gateway are what it is for (fact 34), and VLANs have none. The zone keeps our
// entries apart from the host's, with which the kernel datapath shares them.
const (
	ctZone      uint16 = 0xe000
	markGateway uint32 = 1 // the gateway sent the connection's first packet
)

// Zone is the conntrack zone of the Pods' connections.
const Zone = ctZone

const (
	etherTypeARP  = 0x0806
	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd

	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132

	icmpv6RouterAdvert         = 134
	icmpv6NeighbourSol         = 135
	icmpv6NeighbourAdv         = 136
	icmpv6Redirect             = 137
	ndOptionTargetLLAddr       = 2
	ndSolicitedOverride        = 1<<30 | 1<<29
	arpRequest                 = 1
	arpReply                   = 2
	dhcpv4Server               = 67
	dhcpv4Client               = 68
	dhcpv6Server               = 547
	dhcpv6Client               = 546
	firstPort, lastPort        = 1, 0xfeff // OVS numbers ports below 0xff00
	minVLAN, maxVLAN           = 1, 4094
	end                  uint8 = 0xff // no next table
	// neighbourPriority is above what an embedder may use in the policy tables.
	neighbourPriority = 64000
)

// Kinds of packets, as the beginning of a match. Neighbour discovery names its
// code, always: the kernel datapath is told about target and link-layer option
// only when type and code are both matched whole. Without the code its cache
// would let through, and send to the wrong Pod, whatever resembles a good message.
var (
	arpFrames  = ofp.Match{ofp.EthType(etherTypeARP)}
	ipv4Frames = ofp.Match{ofp.EthType(etherTypeIPv4)}
	ipv6Frames = ofp.Match{ofp.EthType(etherTypeIPv6)}
	ipFrames   = []ofp.Match{ipv4Frames, ipv6Frames}
	solicits   = with(icmpv6(icmpv6NeighbourSol), ofp.ICMPv6Code(0))
	adverts    = with(icmpv6(icmpv6NeighbourAdv), ofp.ICMPv6Code(0))
	groupDst   = ofp.EthDstMasked([6]byte{1}, [6]byte{1})
)

func icmpv6(typ uint8) ofp.Match {
	return ofp.Match{ofp.EthType(etherTypeIPv6), ofp.IPProto(protoICMPv6), ofp.ICMPv6Type(typ)}
}

func udp(etherType, src, dst uint16) ofp.Match {
	return ofp.Match{ofp.EthType(etherType), ofp.IPProto(protoUDP), ofp.UDPSrc(src), ofp.UDPDst(dst)}
}

// with returns base with more fields after it, leaving base alone.
func with(base ofp.Match, more ...ofp.Field) ofp.Match {
	return slices.Concat(base, ofp.Match(more))
}

func from(class uint32) ofp.Field { return ofp.Reg(regFacts, class, fromMask) }

func fact(bit uint32) ofp.Field { return ofp.Reg(regFacts, bit, bit) }

// onVLAN matches frames of an access VLAN; 0: untagged.
func onVLAN(vid uint16) ofp.Field {
	if vid == 0 {
		return ofp.VLANNone()
	}
	return ofp.VLANVID(vid)
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// flows collects flow additions of one owner.
type flows struct {
	cookie uint64
	mods   []ofp.FlowMod
}

// add adds a flow: actions first, then the next table (end: none). Without
// both, the flow drops.
func (f *flows) add(table uint8, priority uint16, match ofp.Match, next uint8, actions ...ofp.Action) {
	mod := ofp.FlowMod{Command: ofp.FlowAdd, Table: table, Priority: priority, Cookie: f.cookie, Match: match}
	if len(actions) > 0 {
		mod.Instructions = append(mod.Instructions, ofp.ApplyActions(actions))
	}
	if next != end {
		mod.Instructions = append(mod.Instructions, ofp.GotoTable(next))
	}
	f.mods = append(f.mods, mod)
}

func (f *flows) drop(table uint8, priority uint16, match ofp.Match) {
	f.add(table, priority, match, end)
}

func setFact(v, mask uint32) ofp.Action { return ofp.SetField(ofp.Reg(regFacts, v, mask)) }

func setPort(port uint32) ofp.Action { return ofp.SetField(ofp.Reg(regPort, port, ^uint32(0))) }

func set(f ofp.Field) ofp.Action { return ofp.SetField(f) }

// move copies a whole field into another of the same width.
func move(src, dst ofp.FieldID) ofp.Action {
	return ofp.CopyField{Src: ofp.Subfield{Field: src}, Dst: ofp.Subfield{Field: dst}, Bits: 8 * src.Len()}
}
