package podflows_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Frames are built by hand: half of what the tests send no library would.

type mac = [6]byte

var (
	broadcast = mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	stranger  = mac{0x0a, 0x66, 0x66, 0x66, 0x66, 0x66}
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func frameOf(dst, src mac, etherType uint16, payload []byte) []byte {
	b := slices.Concat(dst[:], src[:])
	b = binary.BigEndian.AppendUint16(b, etherType)
	return append(b, payload...)
}

// tagged puts a VLAN tag into a frame.
func tagged(frame []byte, tpid, tci uint16) []byte {
	b := slices.Clone(frame[:12])
	b = binary.BigEndian.AppendUint16(b, tpid)
	b = binary.BigEndian.AppendUint16(b, tci)
	return append(b, frame[12:]...)
}

type arpPacket struct {
	dst, src mac // Ethernet header
	op       uint16
	sha      mac
	spa      netip.Addr
	tha      mac
	tpa      netip.Addr
}

func (p arpPacket) frame() []byte {
	b := []byte{0, 1, 8, 0, 6, 4}
	b = binary.BigEndian.AppendUint16(b, p.op)
	b = slices.Concat(b, p.sha[:], p.spa.AsSlice(), p.tha[:], p.tpa.AsSlice())
	return frameOf(p.dst, p.src, 0x0806, b)
}

func arpRequest(from mac, spa, tpa string) arpPacket {
	return arpPacket{dst: broadcast, src: from, op: 1, sha: from, spa: ip(spa), tpa: ip(tpa)}
}

func parseARP(frame []byte) arpPacket {
	p := arpPacket{dst: mac(frame[0:6]), src: mac(frame[6:12])}
	b := frame[14:]
	p.op = binary.BigEndian.Uint16(b[6:])
	p.sha, p.tha = mac(b[8:14]), mac(b[18:24])
	p.spa, _ = netip.AddrFromSlice(b[14:18])
	p.tpa, _ = netip.AddrFromSlice(b[24:28])
	return p
}

// ipPacket makes an IPv4 or IPv6 packet with checksums.
func ipPacket(src, dst string, proto, ttl uint8, payload []byte) (etherType uint16, b []byte) {
	s, d := ip(src), ip(dst)
	payload = slices.Clone(payload)
	if at := map[uint8]int{17: 6, 6: 16, 58: 2}[proto]; at != 0 {
		binary.BigEndian.PutUint16(payload[at:], l4Checksum(s, d, proto, payload))
	}
	if s.Is4() {
		b = []byte{0x45, 0, 0, 0, 0, 1, 0, 0, ttl, proto, 0, 0}
		b = slices.Concat(b, s.AsSlice(), d.AsSlice())
		binary.BigEndian.PutUint16(b[2:], uint16(20+len(payload)))
		if proto == 1 {
			binary.BigEndian.PutUint16(payload[2:], checksum(0, payload))
		}
		binary.BigEndian.PutUint16(b[10:], checksum(0, b))
		return 0x0800, append(b, payload...)
	}
	b = []byte{0x60, 0, 0, 0, 0, 0, proto, ttl}
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	return 0x86dd, slices.Concat(b, s.AsSlice(), d.AsSlice(), payload)
}

func l4Checksum(s, d netip.Addr, proto uint8, payload []byte) uint16 {
	pseudo := slices.Concat(s.AsSlice(), d.AsSlice(), []byte{0, proto})
	pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(payload)))
	return checksum(sum(0, pseudo), payload)
}

func sum(start uint32, b []byte) uint32 {
	for i := 0; i+1 < len(b); i += 2 {
		start += uint32(b[i])<<8 | uint32(b[i+1])
	}
	if len(b)%2 == 1 {
		start += uint32(b[len(b)-1]) << 8
	}
	return start
}

func checksum(start uint32, b []byte) uint16 {
	s := sum(start, b)
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

func udp(sport, dport uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, sport)
	b = binary.BigEndian.AppendUint16(b, dport)
	return append(append(b, 0, 16, 0, 0), blankTag...)
}

// A tag tells the copies of one frame from all others: a number and its
// complement, so that checksums do not depend on it. Frames with a payload of
// their own hold a blank one at the end; to others it is appended, which
// Ethernet allows (but the kernel's conntrack cuts off).
var blankTag = tagOf(0)

func tagOf(n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, n), ^n)
}

func udpFrame(dst, src mac, from, to string, sport, dport uint16) []byte {
	typ, b := ipPacket(from, to, 17, 64, udp(sport, dport))
	return frameOf(dst, src, typ, b)
}

// ndPacket is a neighbour solicitation (135) or advertisement (136).
type ndPacket struct {
	eth    mac // destination; zero: the multicast address that belongs to dst
	src    mac
	typ    uint8
	code   uint8
	from   string
	to     string // "": the solicited-node address of the target, or all nodes
	target string
	option uint8 // 1: source, 2: target link-layer address; 0: none
	lladdr mac
	flags  uint32
}

func (p ndPacket) frame() []byte {
	to := p.to
	if to == "" {
		to = "ff02::1"
		if p.typ == 135 {
			to = solicitedNode(ip(p.target)).String()
		}
	}
	body := []byte{p.typ, p.code, 0, 0}
	body = binary.BigEndian.AppendUint32(body, p.flags)
	body = append(body, ip(p.target).AsSlice()...)
	if p.option != 0 {
		body = append(body, p.option, 1)
		body = append(body, p.lladdr[:]...)
	}
	typ, b := ipPacket(p.from, to, 58, 255, body)
	dst := p.eth
	if dst == (mac{}) {
		a := ip(to).As16()
		dst = mac{0x33, 0x33, a[12], a[13], a[14], a[15]}
	}
	return frameOf(dst, p.src, typ, b)
}

func solicitedNode(a netip.Addr) netip.Addr {
	v := a.As16()
	return netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: v[13], 14: v[14], 15: v[15]})
}

func solicit(from mac, src, target string) ndPacket {
	return ndPacket{src: from, typ: 135, from: src, target: target, option: 1, lladdr: from}
}

func advertise(from mac, src, target string) ndPacket {
	return ndPacket{src: from, typ: 136, from: src, target: target, option: 2, lladdr: from, flags: 1 << 29}
}

// linkLocalOf is what Linux derives from a MAC.
func linkLocalOf(m mac) string {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}).String()
}
