package podflows

import (
	"net/netip"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// An IPv6 host may take any link-local address: Linux derives it from the MAC
// (RFC 4291, appendix A), Windows and stable-privacy hosts draw it. So a Pod may
// use any with its own MAC, but those that are derived from a MAC belong to
// that MAC alone. The derived ones carry ff:fe in the middle of the interface id.

// derivedLinkLocal returns the link-local address that a host with this MAC gives itself.
func derivedLinkLocal(mac ifstore.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{
		0: 0xfe, 1: 0x80,
		8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5],
	})
}

// derivedShape matches every derived link-local address in an IPv6 address field.
func derivedShape(id ofp.FieldID) ofp.Field {
	value := [16]byte{0: 0xfe, 1: 0x80, 11: 0xff, 12: 0xfe}
	mask := [16]byte{0: 0xff, 1: 0xc0, 11: 0xff, 12: 0xff}
	return ofp.NewField(id, value[:], mask[:])
}

// anyLinkLocal matches fe80::/10 in an IPv6 address field.
func anyLinkLocal(id ofp.FieldID) ofp.Field {
	value, mask := [16]byte{0xfe, 0x80}, [16]byte{0xff, 0xc0}
	return ofp.NewField(id, value[:], mask[:])
}

// inPrefix matches a prefix in any IPv6 address field.
func inPrefix(id ofp.FieldID, p netip.Prefix) ofp.Field {
	if p.IsSingleIP() {
		return ofp.NewField(id, p.Addr().AsSlice(), nil)
	}
	var mask [16]byte
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return ofp.NewField(id, p.Addr().AsSlice(), mask[:])
}
