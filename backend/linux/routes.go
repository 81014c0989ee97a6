package linux

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
)

// route is one route of the container's end.
type route struct {
	dst netip.Prefix // masked
	gw  netip.Addr   // the zero Addr: dst is on the link
	mtu int
	// implied: a default route that nobody asked for, made because there is a
	// gateway and no route of its family. When another interface of the
	// container has the default route already, it stays there.
	implied bool
}

func (r route) String() string {
	if r.gw.IsValid() {
		return fmt.Sprintf("%v via %v", r.dst, r.gw)
	}
	return fmt.Sprintf("%v on the link", r.dst)
}

// planRoutes turns the routes of a request, and the gateways of its addresses,
// into routes in the order in which the kernel takes them. A gateway outside
// every subnet gets a route of its own on the link first, or the kernel would
// refuse to route through it.
func planRoutes(addrs []ifstore.Address, asked []ifstore.Route) ([]route, error) {
	var p routePlan
	for _, a := range addrs {
		p.subnets = append(p.subnets, a.Prefix)
	}
	for _, r := range asked {
		if err := p.ask(addrs, r); err != nil {
			return nil, err
		}
	}
	for _, a := range addrs {
		if !a.Gateway.IsValid() {
			continue
		}
		if a.Gateway.Is4() != a.Prefix.Addr().Is4() {
			return nil, fmt.Errorf("gateway %v of address %v is of the other address family; name one of the same", a.Gateway, a.Prefix)
		}
		sameFamily := func(r ifstore.Route) bool { return r.Dst.Addr().Is4() == a.Gateway.Is4() }
		if slices.ContainsFunc(asked, sameFamily) {
			continue
		}
		if err := p.via(defaultDst(a.Gateway.Is4()), a.Gateway, 0, true); err != nil {
			return nil, err
		}
	}
	return p.routes, nil
}

type routePlan struct {
	subnets []netip.Prefix
	routes  []route
}

func (p *routePlan) ask(addrs []ifstore.Address, r ifstore.Route) error {
	if !r.Dst.IsValid() || r.Dst.Addr().Is4In6() {
		return fmt.Errorf("route destination %q is not an IPv4 or IPv6 prefix, such as 10.0.0.0/8", r.Dst)
	}
	if r.MTU < 0 || r.MTU > maxMTU {
		return fmt.Errorf("route %v: MTU %d: want 0 (the interface's) to %d", r.Dst, r.MTU, maxMTU)
	}
	is4 := r.Dst.Addr().Is4()
	if !slices.ContainsFunc(p.subnets, func(s netip.Prefix) bool { return s.Addr().Is4() == is4 }) {
		return fmt.Errorf("route %v: the interface has no address of its family; add one or drop the route", r.Dst)
	}
	gw := r.GW
	if !gw.IsValid() {
		for _, a := range addrs {
			if a.Gateway.IsValid() && a.Gateway.Is4() == is4 {
				gw = a.Gateway
				break
			}
		}
	}
	if gw.IsValid() && gw.Is4() != is4 {
		return fmt.Errorf("route %v: gateway %v is of the other address family; name one of the same", r.Dst, gw)
	}
	return p.via(r.Dst.Masked(), gw, r.MTU, false)
}

func (p *routePlan) via(dst netip.Prefix, gw netip.Addr, mtu int, implied bool) error {
	if gw.IsValid() {
		if slices.ContainsFunc(p.subnets, func(s netip.Prefix) bool { return s.Addr() == gw }) {
			return fmt.Errorf("gateway %v is the interface's own address; name the neighbour that routes", gw)
		}
		self := netip.PrefixFrom(gw, gw.BitLen())
		if !p.onLink(gw) {
			if err := p.add(route{dst: self, implied: implied}); err != nil {
				return err
			}
		}
		if dst == self {
			return nil
		}
	}
	return p.add(route{dst: dst, gw: gw, mtu: mtu, implied: implied})
}

// onLink reports whether the kernel reaches gw without a route of its own:
// inside a subnet, or IPv6 link-local.
func (p *routePlan) onLink(gw netip.Addr) bool {
	if gw.Is6() && gw.IsLinkLocalUnicast() {
		return true
	}
	return slices.ContainsFunc(p.subnets, func(s netip.Prefix) bool { return s.Masked().Contains(gw) })
}

// add appends r unless a route to that destination was planned. The same route
// twice is one; a second gateway gives no implied route, and is refused when it
// was asked for, as the kernel would.
func (p *routePlan) add(r route) error {
	for _, q := range p.routes {
		if q.dst != r.dst {
			continue
		}
		if q.gw != r.gw && !r.implied {
			return fmt.Errorf("two routes for one destination: %v, %v; name one", q, r)
		}
		return nil
	}
	p.routes = append(p.routes, r)
	return nil
}

func defaultDst(is4 bool) netip.Prefix {
	if is4 {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
