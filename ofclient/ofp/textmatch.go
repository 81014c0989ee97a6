package ofp

import "encoding/binary"

// String writes the match as ovs-ofctl does, fields in their own order, with
// the short form of EtherType and protocol (ip, tcp6, arp). The empty match is
// the empty string.
func (m Match) String() string { return string(m.appendText(nil)) }

func (m Match) appendText(b []byte) []byte {
	typeAt, protoAt, short := m.shortForm()
	start := len(b)
	for i := range m {
		if i == protoAt || m[i].id == FieldPacketType && m[i].value == [maxInline]byte{} {
			continue
		}
		fields := m[i : i+1]
		if m[i].id.class() == classPacketRegs && m[i].id.num() < NumRegs/2 {
			// What OVS gives back; it prints the 32-bit registers itself.
			fields = m[i].appendRegs(nil)
		}
		for j := range fields {
			if len(b) > start {
				b = append(b, ',')
			}
			if i == typeAt {
				b = append(b, short...)
			} else {
				b = fields[j].appendMatchText(b)
			}
		}
	}
	return b
}

// shortForm finds the EtherType and protocol fields that one word says; -1 for none.
func (m Match) shortForm() (typeAt, protoAt int, short string) {
	typeAt, protoAt = -1, -1
	for i := range m {
		if m[i].masked {
			continue
		}
		switch m[i].ID() {
		case FieldEthType:
			typeAt = i
		case FieldIPProto:
			protoAt = i
		}
	}
	if typeAt < 0 {
		return -1, -1, ""
	}
	proto := -1
	if protoAt >= 0 {
		proto = int(m[protoAt].value[0])
	}
	var byProto map[int]string
	switch binary.BigEndian.Uint16(m[typeAt].value[:]) {
	case 0x0800:
		short, byProto = "ip", map[int]string{1: "icmp", 6: "tcp", 17: "udp", 132: "sctp"}
	case 0x86dd:
		short, byProto = "ipv6", map[int]string{58: "icmp6", 6: "tcp6", 17: "udp6", 132: "sctp6"}
	case 0x0806:
		return typeAt, -1, "arp"
	case 0x8035:
		return typeAt, -1, "rarp"
	default:
		return -1, -1, ""
	}
	if word := byProto[proto]; word != "" {
		return typeAt, protoAt, word
	}
	return typeAt, -1, short
}
