package nodenet

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Uplink is the interface that holds the node's address.
type Uplink struct {
	Name string
	MTU  int
}

// FindUplink finds the interface that has one of the node's addresses.
func FindUplink(addresses []netip.Addr) (Uplink, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return Uplink{}, fmt.Errorf("list interfaces: %w", err)
	}
	for _, want := range addresses {
		for _, l := range links {
			addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
			if err != nil {
				return Uplink{}, fmt.Errorf("list addresses of %s: %w", l.Attrs().Name, err)
			}
			for _, a := range addrs {
				if ip, _ := netip.AddrFromSlice(a.IP); ip.Unmap() == want {
					return Uplink{Name: l.Attrs().Name, MTU: l.Attrs().MTU}, nil
				}
			}
		}
	}
	return Uplink{}, fmt.Errorf("no interface has one of the Node's addresses %v: the kubelet's --node-ip names an address of this machine", addresses)
}
