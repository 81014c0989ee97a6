package windows

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/derive"
	"github.com/antrea-lite/podnet/podnet"
)

// plan is a request with every open question answered.
type plan struct {
	key       ifstore.Key
	name      string // of the endpoint, the host interface and the OVS port
	namespace GUID
	mac       ifstore.MAC
	mtu       int
	addrs     []netip.Prefix
	routes    []EndpointRoute
	dns       podnet.DNS
}

// newPlan answers the open questions of a request and refuses what can never
// work. Its errors wrap podnet.ErrBadRequest.
func (l *Linker) newPlan(req podnet.Request) (plan, error) {
	p := plan{key: req.Key, name: l.HostName(req.Key), mac: req.MAC, mtu: req.MTU, dns: req.DNS}
	if p.mac.IsZero() {
		p.mac = derive.MACOfName(p.name)
	}
	if p.mtu == 0 {
		p.mtu = l.cfg.MTU
	}
	if p.dns.IsZero() {
		p.dns = l.cfg.DNS
	}
	ns, err := ParseNetNS(req.NetNS)
	if err != nil {
		return plan{}, err
	}
	p.namespace = ns.Namespace
	if err := p.fill(req, ns); err != nil {
		return plan{}, fmt.Errorf("%w: %w", podnet.ErrBadRequest, err)
	}
	return p, nil
}

func (p *plan) fill(req podnet.Request, ns NetNS) error {
	switch {
	case req.ContainerID == "" || req.IfName == "":
		return fmt.Errorf("interface %q has no container id or no name; the runtime passes both (CNI_CONTAINERID, CNI_IFNAME)", req.Key)
	case ns.None:
		return fmt.Errorf("network namespace %q: the runtime made no HNS namespace to attach to; use a runtime that makes one, such as containerd", req.NetNS)
	case ns.Container != "":
		return fmt.Errorf("network namespace %q: the container shares the interface of its sandbox and gets none", req.NetNS)
	case ns.Namespace.IsZero():
		return fmt.Errorf("network namespace is empty; the runtime passes the GUID of one (CNI_NETNS)")
	case p.mac[0]&1 != 0:
		return fmt.Errorf("MAC address %v is a multicast address; ask for a unicast one (second digit even)", p.mac)
	}
	ipv6 := false
	if !req.NoIPAM {
		for _, a := range req.Addresses {
			if err := p.address(a); err != nil {
				return err
			}
			ipv6 = ipv6 || a.Prefix.Addr().Is6()
		}
		if err := p.route(req.Addresses, req.Routes); err != nil {
			return err
		}
	}
	low := minMTU
	if ipv6 {
		low = minMTUIPv6
	}
	if p.mtu < low || p.mtu > maxMTU {
		return fmt.Errorf("MTU %d: want %d to %d (%d is the least for IPv6)", p.mtu, low, maxMTU, minMTUIPv6)
	}
	return nil
}

func (p *plan) address(a ifstore.Address) error {
	addr := a.Prefix.Addr()
	switch {
	case !a.Prefix.IsValid() || addr.Is4In6() || addr.Zone() != "":
		return fmt.Errorf("address %q is not an IPv4 or IPv6 address with a prefix length, such as 10.0.0.5/24", a.Prefix)
	case addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback():
		return fmt.Errorf("address %v cannot be given to an interface; use a unicast address", a.Prefix)
	case slices.ContainsFunc(p.addrs, func(q netip.Prefix) bool { return q.Addr() == addr }):
		return fmt.Errorf("address %v is in the request twice; name it once", addr)
	case a.Gateway.IsValid() && a.Gateway.Is4() != addr.Is4():
		return fmt.Errorf("gateway %v of address %v is of the other address family; name one of the same", a.Gateway, a.Prefix)
	case a.Gateway == addr:
		return fmt.Errorf("gateway %v is the interface's own address; name the neighbour that routes", a.Gateway)
	}
	p.addrs = append(p.addrs, a.Prefix)
	return nil
}

// route plans the asked routes and, for each family with a gateway and no
// route, a default one.
func (p *plan) route(addrs []ifstore.Address, asked []ifstore.Route) error {
	gateway := func(is4 bool) netip.Addr {
		for _, a := range addrs {
			if a.Gateway.IsValid() && a.Gateway.Is4() == is4 {
				return a.Gateway
			}
		}
		return netip.Addr{}
	}
	for _, r := range asked {
		if !r.Dst.IsValid() || r.Dst.Addr().Is4In6() {
			return fmt.Errorf("route destination %q is not an IPv4 or IPv6 prefix, such as 10.0.0.0/8", r.Dst)
		}
		is4 := r.Dst.Addr().Is4()
		gw := r.GW
		if !gw.IsValid() {
			gw = gateway(is4)
		}
		switch {
		case !slices.ContainsFunc(p.addrs, func(q netip.Prefix) bool { return q.Addr().Is4() == is4 }):
			return fmt.Errorf("route %v: the interface has no address of its family; add one or drop the route", r.Dst)
		case !gw.IsValid():
			return fmt.Errorf("route %v has no gateway, and HNS makes none without; name one", r.Dst)
		case gw.Is4() != is4:
			return fmt.Errorf("route %v: gateway %v is of the other address family; name one of the same", r.Dst, gw)
		case r.MTU != 0:
			return fmt.Errorf("route %v has an MTU (%d), which HNS cannot give; drop it or lower the interface's", r.Dst, r.MTU)
		}
		if err := p.addRoute(EndpointRoute{Dst: r.Dst.Masked(), GW: gw}); err != nil {
			return err
		}
	}
	for _, is4 := range []bool{true, false} {
		sameFamily := func(r EndpointRoute) bool { return r.Dst.Addr().Is4() == is4 }
		if gw := gateway(is4); gw.IsValid() && !slices.ContainsFunc(p.routes, sameFamily) {
			p.routes = append(p.routes, EndpointRoute{Dst: defaultDst(is4), GW: gw})
		}
	}
	return nil
}

func (p *plan) addRoute(r EndpointRoute) error {
	for _, q := range p.routes {
		switch {
		case q == r:
			return nil
		case q.Dst == r.Dst:
			return fmt.Errorf("two gateways for route %v: %v, %v; name one", r.Dst, q.GW, r.GW)
		}
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

// endpoint is what is asked of HNS.
func (p plan) endpoint(network GUID) Endpoint {
	return Endpoint{Network: network, Name: p.name, MAC: p.mac, Addresses: p.addrs, Routes: p.routes, DNS: p.dns}
}

// made compares what HNS made with what was asked. HNS may choose another MAC
// address, which is then the interface's; anything else makes the endpoint useless.
func (p plan) made(e Endpoint, wantMAC ifstore.MAC) error {
	var d differences
	if e.Name != p.name {
		d.add("its name is %q, want %q", e.Name, p.name)
	}
	if e.ID.IsZero() {
		d.add("it has no id")
	}
	if e.MAC.IsZero() || e.MAC[0]&1 != 0 {
		d.add("its MAC address is %v", e.MAC)
	} else if !wantMAC.IsZero() && e.MAC != wantMAC {
		d.add("its MAC address is %v, want %v", e.MAC, wantMAC)
	}
	d.addresses(e.Addresses, p.addrs)
	return d.err()
}
