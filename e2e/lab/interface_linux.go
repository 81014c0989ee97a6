package lab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// MTU of an interface in the namespace at ns.
func MTU(ns, ifname string) (mtu int, err error) {
	err = In(ns, func() error {
		i, err := net.InterfaceByName(ifname)
		if err != nil {
			return fmt.Errorf("interface %s in %q: %w", ifname, ns, err)
		}
		mtu = i.MTU
		return nil
	})
	return mtu, err
}

// Addrs are the addresses of an interface in the namespace at ns, IPv4 first,
// without link-local ones.
func Addrs(ns, ifname string) (list []netip.Addr, err error) {
	err = In(ns, func() error {
		i, err := net.InterfaceByName(ifname)
		if err != nil {
			return fmt.Errorf("interface %s in %q: %w", ifname, ns, err)
		}
		found, err := i.Addrs()
		for _, a := range found {
			if ip, ok := netip.AddrFromSlice(a.(*net.IPNet).IP); ok && !ip.IsLinkLocalUnicast() {
				list = append(list, ip.Unmap())
			}
		}
		return err
	})
	slices.SortFunc(list, netip.Addr.Compare)
	return list, err
}
