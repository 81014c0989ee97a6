package linux

import (
	"fmt"
	"strings"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// linkInfo is what this package reads of a link.
type linkInfo struct {
	index   int
	name    string
	kind    string
	alias   string
	mac     ifstore.MAC
	mtu     int
	peer    int // index of the other end, in its namespace
	master  int // index of what it is a part of; 0: nothing
	up      bool
	carrier bool
}

func parseLink(b []byte) (linkInfo, error) {
	if len(b) < unix.SizeofIfInfomsg {
		return linkInfo{}, fmt.Errorf("link message of %d bytes is cut short", len(b))
	}
	msg := nl.DeserializeIfInfomsg(b)
	l := linkInfo{index: int(msg.Index), up: msg.Flags&unix.IFF_UP != 0, carrier: msg.Flags&unix.IFF_LOWER_UP != 0}
	err := eachAttr(b[unix.SizeofIfInfomsg:], func(kind uint16, v []byte) {
		switch kind {
		case unix.IFLA_IFNAME:
			l.name = text(v)
		case unix.IFLA_IFALIAS:
			l.alias = text(v)
		case unix.IFLA_ADDRESS:
			if len(v) == len(l.mac) {
				l.mac = ifstore.MAC(v)
			}
		case unix.IFLA_MTU:
			l.mtu = int(number(v))
		case unix.IFLA_LINK:
			l.peer = int(number(v))
		case unix.IFLA_MASTER:
			l.master = int(number(v))
		case unix.IFLA_LINKINFO:
			l.kind = linkKind(v)
		}
	})
	if err != nil {
		return linkInfo{}, fmt.Errorf("link message: %w", err)
	}
	return l, nil
}

// number reads a 32-bit attribute; 0 when it is cut short.
func number(v []byte) uint32 {
	if len(v) < 4 {
		return 0
	}
	return nl.NativeEndian().Uint32(v)
}

// text reads a string attribute, which the kernel may end with a zero byte.
func text(v []byte) string { return strings.TrimRight(string(v), "\x00") }

func linkKind(info []byte) (kind string) {
	_ = eachAttr(info, func(k uint16, v []byte) { // cut short: no kind, and a link without one is not ours
		if k == nl.IFLA_INFO_KIND {
			kind = text(v)
		}
	})
	return kind
}

// eachAttr calls fn with the type, without its flags, and the value of each
// attribute in b. nl.ParseRouteAttr does the same and panics when one is cut short.
func eachAttr(b []byte, fn func(kind uint16, value []byte)) error {
	for len(b) >= unix.SizeofRtAttr {
		length, kind := int(nl.NativeEndian().Uint16(b)), nl.NativeEndian().Uint16(b[2:])
		if length < unix.SizeofRtAttr || length > len(b) {
			return fmt.Errorf("attribute %d of %d bytes, with %d left", kind, length, len(b))
		}
		fn(kind&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.SizeofRtAttr:length])
		b = b[min(len(b), (length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
	}
	return nil
}
