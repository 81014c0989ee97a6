package routes

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Protocol marks our routes in the kernel (rtnetlink(7), rtm_protocol; numbers
// above RTPROT_STATIC are free for daemons, and `ip route` shows this one as
// "proto 84").
const Protocol netlink.RouteProtocol = 84

// tunnelMAC is the link-layer address of every Pod of another node, seen from a
// node's gateway: the pipeline sends such packets by IP, so it needs only be valid.
var tunnelMAC = net.HardwareAddr{0x0e, 0x70, 0x6f, 0x64, 0x6e, 0x74}

// Apply makes the kernel's routes of Protocol equal to want. changed tells what
// it did, for the log. A route that the kernel refuses is in the error and keeps
// no other from being set; so does one whose Via is on no link: the network
// between the nodes must know the way to it, then.
//
// A route of somebody else to the same range is never replaced: it is in the
// error, unless it leads the same way.
func Apply(want []Route) (changed []string, err error) {
	have, others, err := list()
	if err != nil {
		return nil, err
	}
	var errs []error
	wanted := map[netip.Prefix]netlink.Route{}
	for _, w := range want {
		route, err := w.netlink()
		if err != nil {
			errs = append(errs, w.fault(err))
			continue
		}
		if other, ok := others[w.Dst]; ok && !leadsTo(other, route) {
			errs = append(errs, w.fault(fmt.Errorf("another one is in the way, %s: remove it, or give the nodes other Pod ranges", other)))
			continue
		} else if ok {
			continue
		}
		wanted[w.Dst] = route
		if i := slices.IndexFunc(have, func(h netlink.Route) bool { return equal(h, route) }); i >= 0 {
			have = slices.Delete(have, i, i+1)
		} else if err := netlink.RouteReplace(&route); err != nil {
			errs = append(errs, w.fault(err))
			continue
		} else {
			changed = append(changed, "+"+w.String())
		}
		if w.Device != "" {
			if err := neighbour(route, w); err != nil {
				errs = append(errs, w.fault(fmt.Errorf("neighbour: %w", err)))
			}
		}
	}
	for _, h := range have {
		// A route that was replaced above is gone already.
		if w, ok := wanted[prefixOf(h.Dst)]; ok && !differsByKey(h, w) {
			continue
		}
		if err := netlink.RouteDel(&h); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove route %s: %w", h, err))
			continue
		}
		changed = append(changed, "-"+h.Dst.String())
	}
	slices.SortFunc(changed, cmp.Compare[string])
	return changed, errors.Join(errs...)
}

// differsByKey tells whether replacing one by the other leaves both (an IPv6
// route is replaced by destination, metric and table only, as an IPv4 one is).
func differsByKey(a, b netlink.Route) bool { return a.Priority != b.Priority && b.Priority != 0 }

func prefixOf(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	ip, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), ones)
}

// list reads our routes, and those of others that a route of ours would replace;
// a dump that a change interrupted is read again.
func list() (ours []netlink.Route, others map[netip.Prefix]netlink.Route, err error) {
	for range 10 {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, 0)
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list routes: %w", err)
		}
		ours, others = nil, map[netip.Prefix]netlink.Route{}
		for _, r := range routes {
			if r.Protocol == Protocol {
				ours = append(ours, r)
			} else if p := prefixOf(r.Dst); r.Priority == defaultMetric(p.Addr()) {
				others[p] = r
			}
		}
		return ours, others, nil
	}
	return nil, nil, fmt.Errorf("list routes: %w ten times", netlink.ErrDumpInterrupted)
}

// defaultMetric is that of a route which was made without one, as ours are.
func defaultMetric(a netip.Addr) int {
	if a.Is6() {
		return 1024 // IP6_RT_PRIO_USER
	}
	return 0
}

func (r Route) netlink() (netlink.Route, error) {
	route := netlink.Route{
		Dst:      &net.IPNet{IP: r.Dst.Addr().AsSlice(), Mask: net.CIDRMask(r.Dst.Bits(), r.Dst.Addr().BitLen())},
		Gw:       r.Via.AsSlice(),
		Protocol: Protocol,
		MTU:      r.MTU,
	}
	if r.Device == "" {
		link, err := linkTo(r.Via)
		route.LinkIndex = link
		return route, err
	}
	link, err := netlink.LinkByName(r.Device)
	if err != nil {
		return route, err
	}
	route.LinkIndex = link.Attrs().Index
	route.Flags = int(netlink.FLAG_ONLINK)
	return route, nil
}

// linkTo returns the link on which an address is directly reachable.
func linkTo(a netip.Addr) (index int, err error) {
	found, err := netlink.RouteGet(a.AsSlice())
	if err != nil {
		return 0, fmt.Errorf("no way to %s: %w", a, err)
	}
	for _, f := range found {
		if len(f.Gw) == 0 && f.Type == unix.RTN_UNICAST {
			return f.LinkIndex, nil
		}
	}
	return 0, fmt.Errorf("%s is behind a router: without encapsulation the routers between the nodes must know the Pod ranges, or use encap mode", a)
}

func equal(have, want netlink.Route) bool { return leadsTo(have, want) && have.MTU == want.MTU }

func leadsTo(have, want netlink.Route) bool {
	return prefixOf(have.Dst) == prefixOf(want.Dst) && have.Gw.Equal(want.Gw) && have.LinkIndex == want.LinkIndex
}

// neighbour gives the stand-in for another node its link-layer address, so that
// the host asks nobody for it.
func neighbour(route netlink.Route, r Route) error {
	family := netlink.FAMILY_V4
	if r.Via.Is6() {
		family = netlink.FAMILY_V6
	}
	return netlink.NeighSet(&netlink.Neigh{LinkIndex: route.LinkIndex, Family: family, State: netlink.NUD_PERMANENT,
		IP: route.Gw, HardwareAddr: tunnelMAC})
}

// RemoveNeighbours removes the stand-ins that no route of want needs.
func RemoveNeighbours(device string, want []Route) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	neighbours, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list neighbours of %s: %w", device, err)
	}
	var errs []error
	for _, n := range neighbours {
		ip, _ := netip.AddrFromSlice(n.IP)
		needed := slices.ContainsFunc(want, func(r Route) bool { return r.Via == ip.Unmap() })
		if n.State&netlink.NUD_PERMANENT == 0 || n.HardwareAddr.String() != tunnelMAC.String() || needed {
			continue
		}
		if err := netlink.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove neighbour %s: %w", ip, err))
		}
	}
	return errors.Join(errs...)
}
