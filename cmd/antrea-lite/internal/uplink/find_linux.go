package uplink

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// holder returns the one link that has the node's addresses, the bridge's only if
// there is no other.
func holder(addresses []netip.Addr, bridge string) (netlink.Link, error) {
	links, err := retried(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var found netlink.Link
	for _, link := range links {
		addrs, err := retried(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
		if err != nil {
			return nil, fmt.Errorf("list addresses of %s: %w", link.Attrs().Name, err)
		}
		has := slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return slices.Contains(addresses, addrOf(a.IP)) })
		if !has {
			continue
		}
		if found != nil && link.Attrs().Name == bridge {
			continue
		}
		if found != nil && found.Attrs().Name != bridge {
			return nil, fmt.Errorf("the node's addresses %v are on several interfaces, %s and %s: only one can be moved; give the node addresses of one interface (the kubelet's --node-ip), or use datapath system",
				addresses, found.Attrs().Name, link.Attrs().Name)
		}
		found = link
	}
	if found == nil {
		return nil, fmt.Errorf("no interface has one of the node's addresses %v: the kubelet's --node-ip names an address of this machine", addresses)
	}
	return found, nil
}

// DefaultDevice returns the interface of the default route.
func DefaultDevice() (string, error) {
	routes, err := retried(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, netlink.RT_FILTER_DST)
	})
	if err != nil {
		return "", fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if link, err := netlink.LinkByIndex(r.LinkIndex); err == nil {
			return link.Attrs().Name, nil
		}
	}
	return "", fmt.Errorf("there is no default route: name the device with --device")
}

// movable refuses a device that cannot be a bridge's port, or on which more hangs
// than addresses and routes.
func movable(link netlink.Link) error {
	attrs := link.Attrs()
	refuse := func(why, remedy string) error {
		return fmt.Errorf("interface %s cannot be moved behind Open vSwitch: %s: %s", attrs.Name, why, remedy)
	}
	links, err := retried(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	var above []string
	for _, l := range links {
		if a := l.Attrs(); a.ParentIndex == attrs.Index && a.NetNsID < 0 && l.Type() != "veth" {
			above = append(above, a.Name)
		}
	}
	switch {
	case attrs.MasterIndex != 0:
		master := fmt.Sprint("interface ", attrs.MasterIndex)
		if l, err := netlink.LinkByIndex(attrs.MasterIndex); err == nil {
			master = l.Type() + " " + l.Attrs().Name
		}
		return refuse("it is part of "+master, "move that by hand, or take it out")
	case len(attrs.HardwareAddr) != 6:
		return refuse("it has no Ethernet address ("+link.Type()+")", "use datapath system")
	case link.Type() == "bridge":
		return refuse("it is a bridge of Linux", "let Open vSwitch's bridge take its place, or use datapath system")
	case len(above) > 0:
		return refuse("others are made on it, "+strings.Join(above, ", "), "remove those, or use datapath system")
	}
	routes, err := retried(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if slices.ContainsFunc(r.MultiPath, func(n *netlink.NexthopInfo) bool { return n.LinkIndex == attrs.Index }) {
			return refuse("route "+r.String()+" has several next hops", "make it one")
		}
	}
	return nil
}
