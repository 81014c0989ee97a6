package ofp

import (
	"fmt"
	"net/netip"
)

const (
	nxtCTFlush = 32

	ctOrigTuple  = 0
	ctReplyTuple = 1
	ctZoneID     = 2

	ctTupleSrc      = 0
	ctTupleDst      = 1
	ctTupleSrcPort  = 2
	ctTupleDstPort  = 3
	ctTupleICMPID   = 4
	ctTupleICMPType = 5
	ctTupleICMPCode = 6

	protoICMP   = 1
	protoICMPv6 = 58
)

// CTFlush removes connections from the connection tracker (NXT_CT_FLUSH, OVS
// 3.1 and later): those that have every given part of both tuples. Nothing
// answers it, only an error; send a barrier after it.
type CTFlush struct {
	AllZones bool   // Zone does not count
	Zone     uint16 // 0 is a zone like any other
	Proto    uint8  // 0 for any; needed with ports
	Orig     CTTuple
	Reply    CTTuple
}

// CTTuple is one direction of a connection. The zero value of a part stands for
// any. The parts with ICMP in their name count when the protocol is ICMP or
// ICMPv6, and then OVS compares all three in both tuples, zero or not: leave Proto 0 to
// reach every protocol of an address. The ports count otherwise.
type CTTuple struct {
	Src, Dst         netip.Addr // both of one family; the zero Addr for any
	SrcPort, DstPort uint16
	ICMPID           uint16
	ICMPType         uint8
	ICMPCode         uint8
}

// Type returns TypeExperimenter.
func (*CTFlush) Type() Type { return TypeExperimenter }

func (m *CTFlush) appendBody(b []byte) ([]byte, error) {
	b = put32(put32(b, vendorNicira), nxtCTFlush)
	b = putZeros(append(b, m.Proto), 7)
	if err := m.check(); err != nil {
		return nil, err
	}
	var err error
	if b, err = m.appendTuple(b, ctOrigTuple, m.Orig); err != nil {
		return nil, err
	}
	if b, err = m.appendTuple(b, ctReplyTuple, m.Reply); err != nil {
		return nil, err
	}
	if !m.AllZones {
		b = putProp16(b, ctZoneID, m.Zone)
	}
	return b, nil
}

func (m *CTFlush) icmp() bool { return m.Proto == protoICMP || m.Proto == protoICMPv6 }

// check refuses what OVS would misread: it takes the family from the last
// address and the meaning of the ports from the protocol.
func (m *CTFlush) check() error {
	var family netip.Addr
	for _, t := range [...]CTTuple{m.Orig, m.Reply} {
		for _, a := range [...]netip.Addr{t.Src, t.Dst} {
			switch {
			case !a.IsValid():
				continue
			case a.IsUnspecified() || a.Zone() != "":
				return fmt.Errorf("address %s stands for no host", a)
			case family.IsValid() && family.Unmap().Is4() != a.Unmap().Is4():
				return fmt.Errorf("addresses %s and %s are of different families", family, a)
			}
			family = a
		}
		icmp := t.ICMPID != 0 || t.ICMPType != 0 || t.ICMPCode != 0
		ports := t.SrcPort != 0 || t.DstPort != 0
		if icmp && !m.icmp() || ports && (m.icmp() || m.Proto == 0) {
			return fmt.Errorf("ports or ICMP parts do not fit protocol %d", m.Proto)
		}
	}
	return nil
}

func (m *CTFlush) appendTuple(b []byte, typ uint16, t CTTuple) ([]byte, error) {
	if t == (CTTuple{}) && !m.icmp() {
		return b, nil
	}
	start := len(b)
	b = putZeros(put16(put16(b, typ), 0), 4)
	for i, a := range [...]netip.Addr{ctTupleSrc: t.Src, ctTupleDst: t.Dst} {
		if a.IsValid() {
			v := a.As16() // an IPv4 address travels in its mapped form
			b = append(put16(put16(b, uint16(i)), 20), v[:]...)
			b = putZeros(b, 4)
		}
	}
	if m.icmp() {
		b = putProp16(b, ctTupleICMPID, t.ICMPID)
		b = putZeros(append(put16(put16(b, ctTupleICMPType), 5), t.ICMPType), 3)
		b = putZeros(append(put16(put16(b, ctTupleICMPCode), 5), t.ICMPCode), 3)
	}
	if t.SrcPort != 0 {
		b = putProp16(b, ctTupleSrcPort, t.SrcPort)
	}
	if t.DstPort != 0 {
		b = putProp16(b, ctTupleDstPort, t.DstPort)
	}
	return b, setLen16(b, start, 2, "tuple")
}

// putProp16 appends a property of 16 bits; its length counts two bytes of padding.
func putProp16(b []byte, typ, v uint16) []byte {
	return putZeros(put16(put16(put16(b, typ), 8), v), 2)
}

func (m *CTFlush) decodeBody(_ Header, r *reader) error {
	r.skip(8, "experimenter header")
	m.Proto = r.u8("ip_proto")
	r.skip(7, "ip_proto padding")
	m.AllZones = true
	for r.more() {
		typ, p := r.property("ct property")
		if r.err != nil {
			return r.err
		}
		var err error
		switch typ {
		case ctOrigTuple:
			err = m.Orig.decode(&p)
		case ctReplyTuple:
			err = m.Reply.decode(&p)
		case ctZoneID:
			m.AllZones = false
			m.Zone = p.u16("zone id")
			err = p.err
		default:
			err = fmt.Errorf("type %d is not known", typ)
		}
		if err != nil {
			return fmt.Errorf("ct property: %w", err)
		}
	}
	if r.err != nil {
		return r.err
	}
	return m.check()
}

func (t *CTTuple) decode(r *reader) error {
	r.skip(4, "tuple padding")
	for r.more() {
		typ, p := r.property("tuple property")
		if r.err != nil {
			return r.err
		}
		switch typ {
		case ctTupleSrc:
			t.Src = p.ipAddr("src")
		case ctTupleDst:
			t.Dst = p.ipAddr("dst")
		case ctTupleSrcPort:
			t.SrcPort = p.u16("src_port")
		case ctTupleDstPort:
			t.DstPort = p.u16("dst_port")
		case ctTupleICMPID:
			t.ICMPID = p.u16("icmp_id")
		case ctTupleICMPType:
			t.ICMPType = p.u8("icmp_type")
		case ctTupleICMPCode:
			t.ICMPCode = p.u8("icmp_code")
		default:
			return fmt.Errorf("tuple property: type %d is not known", typ)
		}
		if p.err != nil {
			return p.err
		}
	}
	return r.err
}

// ipAddr reads 16 bytes; all zeros mean no address.
func (r *reader) ipAddr(field string) netip.Addr {
	var v [16]byte
	copy(v[:], r.take(16, field))
	a := netip.AddrFrom16(v).Unmap()
	if v == [16]byte{} {
		return netip.Addr{}
	}
	return a
}
