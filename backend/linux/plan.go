package linux

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// plan is a request with every open question answered: what Link makes and
// what Check expects to find.
type plan struct {
	key     ifstore.Key
	netNS   string
	host    string // name of the host's end
	hostMAC ifstore.MAC
	alias   string
	mac     ifstore.MAC // of the container's end
	mtu     int
	addrs   []netip.Prefix
	routes  []route
	ipv6    bool // at least one address is IPv6
}

// newPlan answers the open questions of a request and refuses what can never
// work. Its errors wrap podnet.ErrBadRequest.
func newPlan(cfg Config, req podnet.Request) (plan, error) {
	p := plan{
		key: req.Key, netNS: req.NetNS,
		host: hostName(cfg.HostPrefix, req.Key), hostMAC: hostMAC(req.Key), alias: alias(req.Key),
		mac: req.MAC, mtu: req.MTU,
	}
	if p.mac.IsZero() {
		p.mac = containerMAC(req.Key)
	}
	if p.mtu == 0 {
		p.mtu = cfg.MTU
	}
	if err := p.fill(req); err != nil {
		return plan{}, fmt.Errorf("%w: %w", podnet.ErrBadRequest, err)
	}
	return p, nil
}

func (p *plan) fill(req podnet.Request) error {
	if req.ContainerID == "" {
		return fmt.Errorf("container id is empty; the runtime must pass one (CNI_CONTAINERID)")
	}
	if err := checkName(req.IfName); err != nil {
		return err
	}
	if p.mac[0]&1 != 0 {
		return fmt.Errorf("MAC address %v is a multicast address; ask for a unicast one (second digit even)", p.mac)
	}
	if p.mac == p.hostMAC {
		return fmt.Errorf("MAC address %v is the one of the host's end; ask for another", p.mac)
	}
	if !req.NoIPAM {
		if err := p.address(req.Addresses, req.Routes); err != nil {
			return err
		}
	}
	return checkMTU(p.mtu, p.ipv6)
}

func (p *plan) address(addrs []ifstore.Address, routes []ifstore.Route) error {
	for _, a := range addrs {
		addr := a.Prefix.Addr()
		switch {
		case !a.Prefix.IsValid() || addr.Is4In6() || addr.Zone() != "":
			return fmt.Errorf("address %q is not an IPv4 or IPv6 address with a prefix length, such as 10.0.0.5/24", a.Prefix)
		case addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback():
			return fmt.Errorf("address %v cannot be given to an interface; use a unicast address", a.Prefix)
		case slices.ContainsFunc(p.addrs, func(q netip.Prefix) bool { return q.Addr() == addr }):
			return fmt.Errorf("address %v is in the request twice; name it once", addr)
		}
		p.addrs = append(p.addrs, a.Prefix)
		p.ipv6 = p.ipv6 || addr.Is6()
	}
	var err error
	p.routes, err = planRoutes(addrs, routes)
	return err
}

func checkMTU(mtu int, ipv6 bool) error {
	low := minMTU
	if ipv6 {
		low = minMTUIPv6
	}
	if mtu < low || mtu > maxMTU {
		return fmt.Errorf("MTU %d: want %d to %d (%d is the least for IPv6)", mtu, low, maxMTU, minMTUIPv6)
	}
	return nil
}

// planOf rebuilds the plan of a recorded interface. What a record says was
// accepted once, so nothing is refused here but routes that cannot be read.
func planOf(iface ifstore.Interface) (plan, error) {
	p := plan{
		key: iface.Key, netNS: iface.NetNS,
		host: iface.Name, hostMAC: hostMAC(iface.Key), alias: alias(iface.Key),
		mac: iface.MAC, mtu: iface.MTU,
	}
	return p, p.address(iface.Addresses, iface.Routes)
}
