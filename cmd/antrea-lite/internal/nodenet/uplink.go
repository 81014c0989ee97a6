package nodenet

import (
	"fmt"
	"net"
	"net/netip"
)

// Uplink is the interface that holds the node's address.
type Uplink struct {
	Name string
	MTU  int
}

// FindUplink finds the interface that has one of the node's addresses.
func FindUplink(addresses []netip.Addr) (Uplink, error) {
	links, err := net.Interfaces()
	if err != nil {
		return Uplink{}, fmt.Errorf("list interfaces: %w", err)
	}
	for _, want := range addresses {
		for _, l := range links {
			addrs, err := l.Addrs()
			if err != nil {
				return Uplink{}, fmt.Errorf("list addresses of %s: %w", l.Name, err)
			}
			for _, a := range addrs {
				if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().WithZone("") == want {
					return Uplink{Name: l.Name, MTU: l.MTU}, nil
				}
			}
		}
	}
	return Uplink{}, fmt.Errorf("no interface has one of the Node's addresses %v: the kubelet's --node-ip names an address of this machine", addresses)
}
