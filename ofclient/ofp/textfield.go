package ofp

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// String writes the field as ovs-ofctl does in a match, such as
// "nw_dst=10.0.0.0/8" or "ct_state=+new+trk".
func (f Field) String() string { return string(f.appendMatchText(nil)) }

// appendMatchText appends name=value or name=value/mask.
func (f *Field) appendMatchText(b []byte) []byte {
	if f.id == 0 {
		return append(append(b, "bad field: "...), f.long...)
	}
	switch f.id {
	case FieldVLANTCI:
		if vid := f.canonical(); vid.id == FieldVLANVID {
			return vid.appendVLANText(b)
		}
	case FieldVLANVID:
		return f.appendVLANText(b)
	case FieldIPFrag:
		return f.appendFragText(b)
	}
	info, ok := f.id.info()
	switch {
	case ok && info.match != "":
		b = append(b, info.match...)
	default:
		b = append(b, f.id.String()...)
	}
	b = append(b, '=')
	return f.appendValueText(b, info)
}

// appendValueText appends value and mask as set_field and the match write them.
func (f *Field) appendValueText(b []byte, info fieldInfo) []byte {
	n := f.id.Len()
	value, mask := f.value[:min(n, maxInline)], f.mask[:min(n, maxInline)]
	if n > maxInline {
		value, mask = f.Value(), f.Mask()
	}
	switch info.kind {
	case kindCTState:
		return appendFlagText(b, bytesUint(value), f.flagMask(mask), ctStateNames[:])
	case kindTCPFlags:
		return appendFlagText(b, bytesUint(value), f.flagMask(mask), tcpFlagNames[:])
	case kindIPv4, kindIPv6:
		if f.masked {
			if bits, ok := prefixBits(mask); ok {
				b = appendOne(b, value, info.kind)
				return strconv.AppendInt(append(b, '/'), int64(bits), 10)
			}
		}
	}
	kind := info.kind
	if f.masked && (kind == kindDec || kind == kindPort) {
		kind = kindHex
	}
	b = appendOne(b, value, kind)
	if f.masked {
		b = appendOne(append(b, '/'), mask, kind)
	}
	return b
}

// appendOne appends one value or mask.
func appendOne(b, v []byte, kind valueKind) []byte {
	switch kind {
	case kindMAC:
		for i, x := range v {
			if i > 0 {
				b = append(b, ':')
			}
			b = hex.AppendEncode(b, []byte{x})
		}
		return b
	case kindIPv4, kindIPv6:
		if a, ok := netip.AddrFromSlice(v); ok {
			return a.AppendTo(b)
		}
	case kindPort:
		if len(v) == 4 {
			return appendPort(b, binary.BigEndian.Uint32(v))
		}
	}
	if len(v) > 8 {
		return appendHex(b, v)
	}
	u := bytesUint(v)
	if kind == kindDec {
		return strconv.AppendUint(b, u, 10)
	}
	if u == 0 {
		return append(b, '0')
	}
	return strconv.AppendUint(append(b, "0x"...), u, 16)
}

// appendHex appends a wide number without leading zeros.
func appendHex(b, v []byte) []byte {
	digits := strings.TrimLeft(hex.EncodeToString(v), "0")
	if digits == "" {
		return append(b, '0')
	}
	return append(append(b, "0x"...), digits...)
}

func bytesUint(v []byte) uint64 {
	var u uint64
	for _, x := range v {
		u = u<<8 | uint64(x)
	}
	return u
}

// flagMask is all ones when the field is exact.
func (f *Field) flagMask(mask []byte) uint64 {
	if !f.masked {
		return ^uint64(0)
	}
	return bytesUint(mask)
}

// prefixBits reports the length of a mask that is ones, then zeros.
func prefixBits(mask []byte) (int, bool) {
	bits, ended := 0, false
	for _, x := range mask {
		for i := 7; i >= 0; i-- {
			one := x>>i&1 == 1
			if one && ended {
				return 0, false
			}
			if one {
				bits++
			} else {
				ended = true
			}
		}
	}
	return bits, true
}

// The words of ovs-ofctl for bits of ct_state and tcp_flags, lowest first.
var (
	ctStateNames = [...]string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}
	tcpFlagNames = [...]string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"}
)

// appendFlagText appends +name for wanted bits and -name for forbidden ones. A
// state with bits that have no name is written as numbers. An exact one of
// zero is 0.
func appendFlagText(b []byte, value, mask uint64, names []string) []byte {
	if mask>>len(names) != 0 {
		if mask == ^uint64(0) {
			if value>>len(names) == 0 && value != 0 {
				return appendBarFlags(b, value, names)
			}
			return appendHexUint(b, value)
		}
		return appendHexUint(append(appendHexUint(b, value), '/'), mask)
	}
	for i, name := range names {
		if mask>>i&1 == 0 {
			continue
		}
		sign := byte('-')
		if value>>i&1 == 1 {
			sign = '+'
		}
		b = append(append(b, sign), name...)
	}
	return b
}

// appendBarFlags appends the set bits of an exact flag field: new|trk.
func appendBarFlags(b []byte, value uint64, names []string) []byte {
	first := true
	for i, name := range names {
		if value>>i&1 == 1 {
			if !first {
				b = append(b, '|')
			}
			b, first = append(b, name...), false
		}
	}
	return b
}

func appendHexUint(b []byte, v uint64) []byte {
	if v == 0 {
		return append(b, '0')
	}
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// appendVLANText writes the tag as ovs-ofctl does: dl_vlan for a whole VID,
// vlan_tci for anything else.
func (f *Field) appendVLANText(b []byte) []byte {
	v := binary.BigEndian.Uint16(f.value[:])
	switch {
	case !f.masked && v&vlanPresent != 0:
		return strconv.AppendUint(append(b, "dl_vlan="...), uint64(v&0xfff), 10)
	case !f.masked:
		return append(b, "vlan_tci=0x0000/0x1fff"...)
	}
	b = append(b, "vlan_tci=0x"...)
	b = hex.AppendEncode(b, f.value[:2])
	b = append(b, "/0x"...)
	return hex.AppendEncode(b, f.mask[:2])
}

// appendFragText writes nw_frag: bit 0 says fragment, bit 1 not the first.
func (f *Field) appendFragText(b []byte) []byte {
	mask := f.mask[0]
	if !f.masked {
		mask = 3
	}
	word := ""
	switch [2]byte{f.value[0], mask} {
	case [2]byte{0, 3}, [2]byte{0, 1}:
		word = "no"
	case [2]byte{1, 1}:
		word = "yes"
	case [2]byte{1, 3}:
		word = "first"
	case [2]byte{3, 3}, [2]byte{2, 2}:
		word = "later"
	case [2]byte{0, 2}:
		word = "not_later"
	default:
		b = appendHexUint(append(b, "ip_frag="...), uint64(f.value[0]))
		return appendHexUint(append(b, '/'), uint64(mask))
	}
	return append(append(b, "nw_frag="...), word...)
}

// appendPort appends a port number or the word for a reserved one.
func appendPort(b []byte, port uint32) []byte {
	names := [...]string{"IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL", "ANY"}
	if port >= PortInPort {
		return append(b, names[port-PortInPort]...)
	}
	if port == PortUnset {
		return append(b, "UNSET"...)
	}
	return strconv.AppendUint(b, uint64(port), 10)
}
