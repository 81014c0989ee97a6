package linux

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/mdlayher/arp"
	"github.com/mdlayher/ndp"
)

const (
	etherTypeARP  = 0x0806
	etherTypeIPv6 = 0x86dd
	protoICMPv6   = 58
)

var (
	broadcast = ifstore.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	// allNodesMAC is where ff02::1 goes (RFC 2464).
	allNodesMAC = ifstore.MAC{0x33, 0x33, 0, 0, 0, 1}
	allNodes    = netip.IPv6LinkLocalAllNodes()
)

// arpAnnouncement is the frame of RFC 5227, section 2.3: a broadcast request
// whose sender and target are both addr. Every neighbour that knows addr
// updates its entry from it; requests are read more widely than replies.
func arpAnnouncement(mac ifstore.MAC, addr netip.Addr) ([]byte, error) {
	p, err := arp.NewPacket(arp.OperationRequest, mac[:], addr, make(net.HardwareAddr, len(mac)), addr)
	if err != nil {
		return nil, err
	}
	body, err := p.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return append(ethernetHeader(broadcast, mac, etherTypeARP), body...), nil
}

// unsolicitedNA is the frame of RFC 4861, section 7.2.6, with the override
// flag: neighbours replace the link-layer address they know for addr.
func unsolicitedNA(mac ifstore.MAC, addr netip.Addr) ([]byte, error) {
	body, err := ndp.MarshalMessageChecksum(&ndp.NeighborAdvertisement{
		Override:      true,
		TargetAddress: addr,
		Options:       []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: mac[:]}},
	}, addr, allNodes)
	if err != nil {
		return nil, err
	}
	frame := ethernetHeader(allNodesMAC, mac, etherTypeIPv6)
	frame = append(frame, 0x60, 0, 0, 0) // version 6
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(body)))
	frame = append(frame, protoICMPv6, 255) // a receiver drops ND with any other hop limit
	frame = append(frame, addr.AsSlice()...)
	frame = append(frame, allNodes.AsSlice()...)
	return append(frame, body...), nil
}

func ethernetHeader(dst, src ifstore.MAC, etherType uint16) []byte {
	b := append(append(make([]byte, 0, 128), dst[:]...), src[:]...)
	return binary.BigEndian.AppendUint16(b, etherType)
}
