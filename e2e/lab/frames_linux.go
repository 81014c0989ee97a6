package lab

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// EtherTypes that the frame builders use.
const (
	EthIPv4 = 0x0800
	EthARP  = 0x0806
	EthVLAN = 0x8100
	EthIPv6 = 0x86dd
)

// MAC is an Ethernet address.
type MAC [6]byte

// ParseMAC reads aa:bb:cc:dd:ee:ff.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return MAC{}, fmt.Errorf("MAC address %q: want aa:bb:cc:dd:ee:ff", s)
	}
	return MAC(hw), nil
}

// Broadcast is the Ethernet broadcast address.
func Broadcast() MAC { return MAC{255, 255, 255, 255, 255, 255} }

// Ethernet builds a frame.
func Ethernet(dst, src MAC, etherType uint16, payload []byte) []byte {
	b := append(append([]byte{}, dst[:]...), src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherType)
	return append(b, payload...)
}

// Tagged puts an 802.1Q tag in front of a frame's EtherType.
func Tagged(frame []byte, vlan uint16) []byte {
	b := append([]byte{}, frame[:12]...)
	b = binary.BigEndian.AppendUint16(b, EthVLAN)
	b = binary.BigEndian.AppendUint16(b, vlan)
	return append(b, frame[12:]...)
}

// ARP builds an ARP packet (RFC 826); op 1 asks, 2 answers.
func ARP(op uint16, sha MAC, spa netip.Addr, tha MAC, tpa netip.Addr) []byte {
	b := []byte{0, 1, 8, 0, 6, 4}
	b = binary.BigEndian.AppendUint16(b, op)
	b = append(append(b, sha[:]...), spa.AsSlice()...)
	return append(append(b, tha[:]...), tpa.AsSlice()...)
}

// IP builds an IPv4 or IPv6 packet with hop limit 64 (255 for ICMPv6, which
// neighbour discovery demands).
func IP(src, dst netip.Addr, proto uint8, payload []byte) []byte {
	if src.Is6() {
		b := []byte{0x60, 0, 0, 0}
		b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
		b = append(b, proto, 255)
		b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
		return append(b, payload...)
	}
	b := []byte{0x45, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(20+len(payload)))
	b = append(b, 0, 0, 0, 0, 64, proto, 0, 0)
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, payload...)
}

// ICMPv6 fills in the checksum of an ICMPv6 message and wraps it in IPv6.
func ICMPv6(src, dst netip.Addr, msg []byte) []byte {
	return IP(src, dst, unix.IPPROTO_ICMPV6, withChecksum(src, dst, unix.IPPROTO_ICMPV6, msg, 2))
}

// UDP builds a datagram in its IP packet.
func UDP(src, dst netip.AddrPort, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = append(append(b, 0, 0), payload...)
	return IP(src.Addr(), dst.Addr(), unix.IPPROTO_UDP, withChecksum(src.Addr(), dst.Addr(), unix.IPPROTO_UDP, b, 6))
}

// withChecksum writes the checksum over pseudo header and message at offset at.
func withChecksum(src, dst netip.Addr, proto uint8, msg []byte, at int) []byte {
	pseudo := append(append([]byte{}, src.AsSlice()...), dst.AsSlice()...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(msg)))
	pseudo = append(pseudo, 0, 0, 0, proto)
	msg = append([]byte{}, msg...)
	binary.BigEndian.PutUint16(msg[at:], checksum(append(pseudo, msg...)))
	return msg
}

// NeighborAdvertisement builds an unsolicited NA (RFC 4861 4.4) that claims
// target for lladdr.
func NeighborAdvertisement(src, dst, target netip.Addr, lladdr MAC) []byte {
	msg := []byte{136, 0, 0, 0, 0x20, 0, 0, 0}
	msg = append(append(msg, target.AsSlice()...), 2, 1)
	return ICMPv6(src, dst, append(msg, lladdr[:]...))
}

// NeighborSolicitation builds an NS (RFC 4861 4.3) for target.
func NeighborSolicitation(src, dst, target netip.Addr, lladdr MAC) []byte {
	msg := []byte{135, 0, 0, 0, 0, 0, 0, 0}
	msg = append(append(msg, target.AsSlice()...), 1, 1)
	return ICMPv6(src, dst, append(msg, lladdr[:]...))
}

// Wire is a packet socket on one interface: it sends raw frames and sees every
// frame that passes. Its methods are for one goroutine.
type Wire struct {
	f *os.File
}

// OpenWire opens a packet socket on an interface of a namespace.
func OpenWire(ns, ifname string) (*Wire, error) {
	w := &Wire{}
	err := In(ns, func() error {
		link, err := net.InterfaceByName(ifname)
		if err != nil {
			return err
		}
		all := uint16(unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8) // network byte order
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(all))
		if err != nil {
			return err
		}
		to := unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}
		if err := unix.Bind(fd, &to); err != nil {
			unix.Close(fd)
			return err
		}
		w.f = os.NewFile(uintptr(fd), "packet socket")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("packet socket on %s in %q: %w", ifname, ns, err)
	}
	return w, nil
}

// Send puts one frame on the wire.
func (w *Wire) Send(frame []byte) error {
	_, err := w.f.Write(frame)
	return err
}

// Wait returns the first frame until deadline that match accepts;
// os.ErrDeadlineExceeded when none came. A tag that the kernel took off is not seen.
func (w *Wire) Wait(deadline time.Time, match func(frame []byte) bool) ([]byte, error) {
	if err := w.f.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := w.f.Read(buf)
		if err != nil {
			return nil, err
		}
		if match(buf[:n]) {
			return append([]byte{}, buf[:n]...), nil
		}
	}
}

// Close closes the socket.
func (w *Wire) Close() error { return w.f.Close() }
