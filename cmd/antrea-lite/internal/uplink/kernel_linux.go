package uplink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// snapshot reads what a device has of what is moved. Link-local addresses and the
// routes that come with an address are made by the kernel wherever the address is.
func snapshot(link netlink.Link) (r Record, err error) {
	attrs := link.Attrs()
	r = Record{Device: attrs.Name, MAC: attrs.HardwareAddr.String(), MTU: attrs.MTU}
	addrs, err := retried(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return r, fmt.Errorf("list addresses of %s: %w", attrs.Name, err)
	}
	for _, a := range addrs {
		own := prefixOf(a.IPNet)
		if own.Addr().Is6() && own.Addr().IsLinkLocalUnicast() {
			continue
		}
		address := Address{Prefix: own, Scope: a.Scope}
		if peer := prefixOf(a.Peer); peer != own {
			address.Peer = peer
		}
		r.Addresses = append(r.Addresses, address)
	}
	routes, err := retried(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{LinkIndex: attrs.Index, Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return r, fmt.Errorf("list routes through %s: %w", attrs.Name, err)
	}
	for _, route := range routes {
		if route.Protocol == unix.RTPROT_KERNEL || route.Type != unix.RTN_UNICAST || route.Table == unix.RT_TABLE_LOCAL || route.Flags&unix.RTM_F_CLONED != 0 {
			continue
		}
		r.Routes = append(r.Routes, recordRoute(route))
	}
	return r, nil
}

// retried repeats a dump that a change has interrupted.
func retried[T any](dump func() ([]T, error)) (list []T, err error) {
	for range 10 {
		if list, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return list, err
}

func recordRoute(r netlink.Route) Route {
	dst := prefixOf(r.Dst)
	if r.Dst == nil {
		dst = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if r.Family == netlink.FAMILY_V6 {
			dst = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
	}
	return Route{Dst: dst, Gateway: addrOf(r.Gw), Source: addrOf(r.Src), Metric: r.Priority, Table: r.Table, Scope: int(r.Scope),
		Protocol: int(r.Protocol), MTU: r.MTU, OnLink: r.Flags&unix.RTNH_F_ONLINK != 0}
}

// on is the route through a link.
func (r Route) on(link netlink.Link) *netlink.Route {
	out := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(r.Dst), Priority: r.Metric, Table: r.Table, Scope: netlink.Scope(r.Scope),
		Protocol: netlink.RouteProtocol(r.Protocol), MTU: r.MTU, Type: unix.RTN_UNICAST}
	if r.Gateway.IsValid() {
		out.Gw = r.Gateway.AsSlice()
	}
	if r.Source.IsValid() {
		out.Src = r.Source.AsSlice()
	}
	if r.OnLink {
		out.Flags = unix.RTNH_F_ONLINK
	}
	return out
}

// on is the address for a link.
func (a Address) on() *netlink.Addr {
	out := &netlink.Addr{IPNet: ipNet(a.Prefix), Scope: a.Scope}
	if a.Prefix.Addr().Is6() {
		// It was found to be nobody else's where it comes from.
		out.Flags = unix.IFA_F_NODAD
	}
	if a.Peer.IsValid() {
		out.Peer = ipNet(a.Peer)
	}
	return out
}

// give puts addresses and routes of a record on a link, routes without a gateway
// first: the gateways of the others may be behind them. A route through another
// link is replaced in one go, so that there is always one.
func (r Record) give(link netlink.Link) error {
	name := link.Attrs().Name
	for _, a := range r.Addresses {
		if err := netlink.AddrReplace(link, a.on()); err != nil {
			return fmt.Errorf("address %s on %s: %w", a.Prefix, name, err)
		}
	}
	for _, behind := range []bool{false, true} {
		for _, route := range r.Routes {
			if route.Gateway.IsValid() != behind {
				continue
			}
			if err := netlink.RouteReplace(route.on(link)); err != nil {
				return fmt.Errorf("route %s via %s through %s: %w", route.Dst, route.Gateway, name, err)
			}
		}
	}
	return nil
}

// take removes addresses and routes of a record from a link that has them no longer
// for itself.
func (r Record) take(link netlink.Link) error {
	name := link.Attrs().Name
	for _, route := range r.Routes {
		if err := netlink.RouteDel(route.on(link)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove route %s from %s: %w", route.Dst, name, err)
		}
	}
	for _, a := range r.Addresses {
		if err := netlink.AddrDel(link, a.on()); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove address %s from %s: %w", a.Prefix, name, err)
		}
	}
	return nil
}

// linkByName returns nil when there is none of that name.
func linkByName(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	return link, nil
}

func prefixOf(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(addrOf(n.IP), ones)
}

func addrOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
