package linux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Check compares both ends of the pair with the record: namespace, kinds, MAC,
// MTU, state, that they are each other's peer, every address and route, and the
// offload. The error holds every difference,
// in one line.
func (l *Linker) Check(ctx context.Context, iface ifstore.Interface) error {
	if isDevice(iface) {
		return l.checkDevice(iface)
	}
	p, err := planOf(iface)
	if err != nil {
		return err
	}
	host, hostErr := l.checkHost(p)
	ns, err := openNetNS(p.netNS)
	if err != nil {
		return differences{hostErr, err}.err()
	}
	defer ns.close()
	var d differences
	err = ns.run(func() error {
		var err error
		d, err = l.checkContainer(ctx, p, host)
		return err
	})
	return differences{hostErr, in(p, append(d, err).err())}.err()
}

func (l *Linker) checkHost(p plan) (linkInfo, error) {
	c, err := dialRTNL()
	if err != nil {
		return linkInfo{}, err
	}
	defer c.close()
	link, err := lookUp(c, p.host)
	if err != nil {
		return linkInfo{}, fmt.Errorf("host end: %w", err)
	}
	var d differences
	if !owns(link, p.host, p.key) {
		d.add("host end %s is a stranger's: %s %q, alias %q, MAC %v", p.host, link.kindOr("interface"), link.name, link.alias, link.mac)
		return linkInfo{}, d.err()
	}
	d.compare("host end "+p.host, link, p.hostMAC, p.mtu)
	if l.cfg.QuietHost {
		if err := d.quietness(p.host); err != nil {
			return linkInfo{}, err
		}
	}
	return link, d.err()
}

// checkContainer runs inside the namespace. It returns the differences, or why
// they cannot be told.
func (l *Linker) checkContainer(ctx context.Context, p plan, host linkInfo) (differences, error) {
	c, err := dialRTNL()
	if err != nil {
		return nil, err
	}
	defer c.close()
	link, err := lookUp(c, p.key.IfName)
	if errors.Is(err, errNoLink) {
		return differences{err}, nil
	}
	if err != nil {
		return nil, err
	}
	var d differences
	if link.name != p.key.IfName {
		d.add("%s is an alternative name of %s, not an interface", p.key.IfName, link.name)
		return d, nil
	}
	if link.kind != "veth" {
		d.add("is a %s, not a veth", link.kindOr("device of no kind"))
	}
	d.compare("container end", link, p.mac, p.mtu)
	if host.index != 0 && (host.peer != link.index || link.peer != host.index) {
		d.add("is not the peer of %s: index %d with peer %d here, index %d with peer %d on the host",
			host.name, link.index, link.peer, host.index, host.peer)
	}
	if err := d.addresses(ctx, p, link.index); err != nil {
		return d, err
	}
	if err := d.routes(ctx, p, link.index); err != nil {
		return d, err
	}
	if l.cfg.DisableTXChecksum {
		on, err := ethtool.Get(p.key.IfName, ethtool.TXChecksum)
		if err != nil {
			return d, err
		}
		if on {
			d.add("TX checksum offload is on; with the userspace datapath TCP stalls")
		}
	}
	return d, nil
}

func (d *differences) compare(what string, link linkInfo, mac ifstore.MAC, mtu int) {
	if link.mac != mac {
		d.add("%s: MAC address is %v, want %v", what, link.mac, mac)
	}
	if link.mtu != mtu {
		d.add("%s: MTU is %d, want %d", what, link.mtu, mtu)
	}
	if !link.up {
		d.add("%s: is down", what)
	} else if !link.carrier {
		d.add("%s: has no carrier: the other end is down", what)
	}
}

func (d *differences) addresses(ctx context.Context, p plan, index int) error {
	have := map[netip.Prefix]int{}
	err := listing(ctx, func(h *netlink.Handle) error {
		clear(have)
		list, err := h.AddrList(indexed(index), netlink.FAMILY_ALL)
		for _, a := range list {
			have[prefixOf(a.IPNet)] = a.Flags
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range p.addrs {
		flags, ok := have[a]
		switch {
		case !ok:
			d.add("address %v is missing", a)
		case flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0:
			d.add("address %v is not usable (duplicate address detection)", a)
		}
	}
	return nil
}

func (d *differences) routes(ctx context.Context, p plan, index int) error {
	var have []netlink.Route
	err := listing(ctx, func(h *netlink.Handle) (err error) {
		have, err = h.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		return err
	})
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, want := range p.routes {
		ours := slices.ContainsFunc(have, func(r netlink.Route) bool { return r.LinkIndex == index && sameRoute(r, want) })
		others := want.implied && slices.ContainsFunc(have, func(r netlink.Route) bool {
			return r.LinkIndex != index && routeDst(r, want.dst.Addr().Is4()) == want.dst
		})
		if !ours && !others {
			d.add("route %v is missing", want)
		}
	}
	return nil
}

func sameRoute(r netlink.Route, want route) bool {
	if routeDst(r, want.dst.Addr().Is4()) != want.dst || want.mtu != 0 && r.MTU != want.mtu {
		return false
	}
	gw, _ := netip.AddrFromSlice(r.Gw)
	return gw.Unmap() == want.gw
}

// routeDst is the destination of r among the routes of one family, or the zero
// Prefix when r is of the other one.
func routeDst(r netlink.Route, is4 bool) netip.Prefix {
	switch {
	case (r.Family == unix.AF_INET) != is4:
		return netip.Prefix{}
	case r.Dst == nil:
		return defaultDst(is4)
	}
	return prefixOf(r.Dst)
}

func prefixOf(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	addr, _ := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if bits == 32 {
		addr = addr.Unmap()
	}
	return netip.PrefixFrom(addr, ones)
}

func indexed(index int) netlink.Link {
	return &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// listTries bounds how often a list is read again that changed under the reader.
const listTries = 10

// listing calls list with a fresh socket of the thread's namespace until the
// kernel gives a whole list. A partial list is never used: what is missing
// from it would look gone.
func listing(ctx context.Context, list func(*netlink.Handle) error) error {
	var err error
	for range listTries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, openErr := netlink.NewHandle(unix.NETLINK_ROUTE)
		if openErr != nil {
			return openErr
		}
		err = list(h)
		h.Close()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return fmt.Errorf("read %d times, and it changed each time: %w", listTries, err)
}
