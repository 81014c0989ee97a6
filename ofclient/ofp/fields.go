package ofp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// The constructors below make the match fields of the pipeline. A field that
// needs another one before it (an address its EtherType, a port its protocol)
// is refused by the switch, not here, when that one is missing.

const vlanPresent = 0x1000 // OFPVID_PRESENT: the packet has a tag

func exact8(id FieldID, v uint8) Field { return NewField(id, []byte{v}, nil) }

func exact16(id FieldID, v uint16) Field {
	return NewField(id, binary.BigEndian.AppendUint16(nil, v), nil)
}

func exact32(id FieldID, v uint32) Field {
	return NewField(id, binary.BigEndian.AppendUint32(nil, v), nil)
}

// masked32 makes an exact field of an all-ones mask, as OVS does.
func masked32(id FieldID, v, mask uint32) Field {
	if mask == ^uint32(0) {
		return exact32(id, v)
	}
	return NewField(id, binary.BigEndian.AppendUint32(nil, v), binary.BigEndian.AppendUint32(nil, mask))
}

// prefix makes an address field; a host prefix is exact.
func prefix(id FieldID, p netip.Prefix) Field {
	if !p.IsValid() || p.Addr().Is4() != (id.Len() == 4) || p.Addr().Is4In6() {
		return badField(fmt.Sprintf("%s: %s is no prefix of its family", id, p))
	}
	value := p.Addr().AsSlice()
	if p.IsSingleIP() {
		return NewField(id, value, nil)
	}
	mask := make([]byte, len(value))
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return NewField(id, value, mask)
}

// InPort matches the port that a packet came in by.
func InPort(port uint32) Field { return exact32(FieldInPort, port) }

// EthDst matches, or sets, the destination MAC address.
func EthDst(mac [6]byte) Field { return NewField(FieldEthDst, mac[:], nil) }

// EthDstMasked matches some bits of the destination MAC address, such as the
// multicast bit 01:00:00:00:00:00.
func EthDstMasked(mac, mask [6]byte) Field { return NewField(FieldEthDst, mac[:], mask[:]) }

// EthSrc matches, or sets, the source MAC address.
func EthSrc(mac [6]byte) Field { return NewField(FieldEthSrc, mac[:], nil) }

// EthType matches the EtherType inside all VLAN tags.
func EthType(t uint16) Field { return exact16(FieldEthType, t) }

// VLANVID matches packets tagged with this VLAN; in a set-field action it
// writes the VID into the tag that must be there.
func VLANVID(vid uint16) Field {
	if vid >= vlanPresent {
		return badField(fmt.Sprintf("vlan_vid: %d is no VLAN id", vid))
	}
	return exact16(FieldVLANVID, vid|vlanPresent)
}

// VLANVIDMasked matches some bits of the VID field; bit 0x1000 means "has a tag".
func VLANVIDMasked(v, mask uint16) Field {
	return NewField(FieldVLANVID, binary.BigEndian.AppendUint16(nil, v), binary.BigEndian.AppendUint16(nil, mask))
}

// VLANNone matches packets without a tag.
func VLANNone() Field { return exact16(FieldVLANVID, 0) }

// VLANTagged matches packets with a tag, whatever its VID.
func VLANTagged() Field { return VLANVIDMasked(vlanPresent, vlanPresent) }

// VLANTCI matches bits of the whole tag (NXM_OF_VLAN_TCI); bit 0x1000 means "has a tag".
func VLANTCI(tci, mask uint16) Field {
	if mask == 0xffff {
		return exact16(FieldVLANTCI, tci)
	}
	return NewField(FieldVLANTCI, binary.BigEndian.AppendUint16(nil, tci), binary.BigEndian.AppendUint16(nil, mask))
}

// IPProto matches the protocol of IPv4 or IPv6.
func IPProto(proto uint8) Field { return exact8(FieldIPProto, proto) }

// IPTTL matches, or sets, the TTL or hop limit.
func IPTTL(ttl uint8) Field { return exact8(FieldIPTTL, ttl) }

// IPv4Src matches, or sets, the IPv4 source.
func IPv4Src(p netip.Prefix) Field { return prefix(FieldIPv4Src, p) }

// IPv4Dst matches, or sets, the IPv4 destination.
func IPv4Dst(p netip.Prefix) Field { return prefix(FieldIPv4Dst, p) }

// TunSrc matches the outer source address of a packet that came out of a tunnel.
func TunSrc(a netip.Addr) Field {
	if a.Is4() {
		return prefix(FieldTunSrc, netip.PrefixFrom(a, 32))
	}
	return prefix(FieldTunIPv6Src, netip.PrefixFrom(a, 128))
}

// TunDst matches, or sets, the address of the tunnel's other end.
func TunDst(a netip.Addr) Field {
	if a.Is4() {
		return prefix(FieldTunDst, netip.PrefixFrom(a, 32))
	}
	return prefix(FieldTunIPv6Dst, netip.PrefixFrom(a, 128))
}

// IPv6Src matches, or sets, the IPv6 source.
func IPv6Src(p netip.Prefix) Field { return prefix(FieldIPv6Src, p) }

// IPv6Dst matches, or sets, the IPv6 destination.
func IPv6Dst(p netip.Prefix) Field { return prefix(FieldIPv6Dst, p) }

// TCPSrc matches the TCP source port.
func TCPSrc(port uint16) Field { return exact16(FieldTCPSrc, port) }

// TCPDst matches the TCP destination port.
func TCPDst(port uint16) Field { return exact16(FieldTCPDst, port) }

// UDPSrc matches the UDP source port.
func UDPSrc(port uint16) Field { return exact16(FieldUDPSrc, port) }

// UDPDst matches the UDP destination port.
func UDPDst(port uint16) Field { return exact16(FieldUDPDst, port) }

// ICMPv4Type matches, or sets, the ICMP type.
func ICMPv4Type(t uint8) Field { return exact8(FieldICMPv4Type, t) }

// ICMPv4Code matches, or sets, the ICMP code.
func ICMPv4Code(c uint8) Field { return exact8(FieldICMPv4Code, c) }

// ICMPv6Type matches, or sets, the ICMPv6 type.
func ICMPv6Type(t uint8) Field { return exact8(FieldICMPv6Type, t) }

// ICMPv6Code matches, or sets, the ICMPv6 code.
func ICMPv6Code(c uint8) Field { return exact8(FieldICMPv6Code, c) }

// ARPOp matches, or sets, the ARP operation: 1 request, 2 reply.
func ARPOp(op uint16) Field { return exact16(FieldARPOp, op) }

// ARPSPA matches, or sets, the sender's IPv4 address in ARP.
func ARPSPA(p netip.Prefix) Field { return prefix(FieldARPSPA, p) }

// ARPTPA matches, or sets, the target's IPv4 address in ARP.
func ARPTPA(p netip.Prefix) Field { return prefix(FieldARPTPA, p) }

// ARPSHA matches, or sets, the sender's MAC address in ARP.
func ARPSHA(mac [6]byte) Field { return NewField(FieldARPSHA, mac[:], nil) }

// ARPTHA matches, or sets, the target's MAC address in ARP.
func ARPTHA(mac [6]byte) Field { return NewField(FieldARPTHA, mac[:], nil) }

// NDTarget matches, or sets, the target address of neighbour discovery.
func NDTarget(a netip.Addr) Field {
	if !a.Is6() || a.Is4In6() {
		return badField(fmt.Sprintf("nd_target: %s is no IPv6 address", a))
	}
	return NewField(FieldNDTarget, a.AsSlice(), nil)
}

// NDSLL matches, or sets, the source link-layer address of a solicitation.
func NDSLL(mac [6]byte) Field { return NewField(FieldNDSLL, mac[:], nil) }

// NDTLL matches, or sets, the target link-layer address of an advertisement.
func NDTLL(mac [6]byte) Field { return NewField(FieldNDTLL, mac[:], nil) }

// NDReserved matches, or sets, the flags word of an advertisement: router
// 1<<31, solicited 1<<30, override 1<<29.
func NDReserved(v uint32) Field { return exact32(FieldNDReserved, v) }

// NDOptionsType matches, or sets, the type of the first option: 1 source, 2
// target link-layer address.
func NDOptionsType(t uint8) Field { return exact8(FieldNDOptionsType, t) }

// Reg matches, or sets, the bits of register n that mask has.
func Reg(n int, value, mask uint32) Field {
	id := RegID(n)
	if id == 0 {
		return badField(fmt.Sprintf("reg%d: registers are reg0 to reg%d", n, NumRegs-1))
	}
	return masked32(id, value, mask)
}

// Bits of CTState.
const (
	CTNew         uint32 = 1 << 0
	CTEstablished uint32 = 1 << 1
	CTRelated     uint32 = 1 << 2
	CTReply       uint32 = 1 << 3
	CTInvalid     uint32 = 1 << 4
	CTTracked     uint32 = 1 << 5
	CTSourceNAT   uint32 = 1 << 6
	CTDestNAT     uint32 = 1 << 7
)

// CTState matches bits of the conntrack state.
func CTState(value, mask uint32) Field { return masked32(FieldCTState, value, mask) }

// CTZone matches the zone that the packet was tracked in.
func CTZone(zone uint16) Field { return exact16(FieldCTZone, zone) }

// CTMark matches bits of the connection's mark, or sets them inside CT.Exec.
func CTMark(value, mask uint32) Field { return masked32(FieldCTMark, value, mask) }

// PktMark matches, or sets, bits of the packet's mark (skb mark on the kernel datapath).
func PktMark(value, mask uint32) Field { return masked32(FieldPktMark, value, mask) }
