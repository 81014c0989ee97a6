package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
)

// Apply makes the interface as it has to be and returns it. It changes only
// what differs; changed tells what, for the log. The interface itself comes from
// Open vSwitch.
func Apply(conf Config) (state State, changed []string, err error) {
	link, err := netlink.LinkByName(conf.Name)
	if err != nil {
		return State{}, nil, fmt.Errorf("gateway interface %s: %w: Open vSwitch makes it; see the port's error with ovs-vsctl list interface %s", conf.Name, err, conf.Name)
	}
	fail := func(what string, err error) (State, []string, error) {
		return State{}, changed, fmt.Errorf("gateway interface %s: %s: %w", conf.Name, what, err)
	}
	if link.Attrs().MTU != conf.MTU {
		if err := netlink.LinkSetMTU(link, conf.MTU); err != nil {
			return fail(fmt.Sprintf("set MTU %d", conf.MTU), err)
		}
		changed = append(changed, fmt.Sprintf("MTU %d -> %d", link.Attrs().MTU, conf.MTU))
	}
	// Before it is up, so that no router advertisement slips in.
	if set, err := applySettings(conf); err != nil {
		return fail("kernel settings", err)
	} else {
		changed = append(changed, set...)
	}
	if link.Attrs().Flags&net.FlagUp == 0 {
		if err := netlink.LinkSetUp(link); err != nil {
			return fail("set up", err)
		}
		changed = append(changed, "up")
	}
	set, err := applyAddresses(link, conf.Addresses)
	changed = append(changed, set...)
	if err != nil {
		return fail("addresses", err)
	}
	if state, err = Look(conf.Name); err == nil && !state.Up {
		err = fmt.Errorf("gateway interface %s: it was set up and is down again", conf.Name)
	}
	return state, changed, err
}

// Look returns the interface as it is.
func Look(name string) (State, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return State{}, fmt.Errorf("gateway interface %s: %w", name, err)
	}
	a := link.Attrs()
	s := State{MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
	copy(s.MAC[:], a.HardwareAddr)
	addrs, err := list(link)
	if err != nil {
		return s, fmt.Errorf("gateway interface %s: %w", name, err)
	}
	for _, a := range addrs {
		s.Addresses = append(s.Addresses, prefix(a))
	}
	return s, nil
}

func applySettings(conf Config) (changed []string, err error) {
	v4 := slices.ContainsFunc(conf.Addresses, func(p netip.Prefix) bool { return p.Addr().Is4() })
	v6 := slices.ContainsFunc(conf.Addresses, func(p netip.Prefix) bool { return p.Addr().Is6() })
	if v6 {
		if err := keepRouterAdvertisements(conf.Name); err != nil {
			return nil, err
		}
	}
	for _, s := range Settings(conf.Name, v4, v6) {
		did, err := s.apply()
		if err != nil {
			return changed, err
		}
		if did {
			changed = append(changed, s.Path+" = "+s.Value)
		}
	}
	return changed, nil
}

// applyAddresses makes the address set exact; link-local addresses are the kernel's.
func applyAddresses(link netlink.Link, want []netip.Prefix) (changed []string, err error) {
	have, err := list(link)
	if err != nil {
		return nil, err
	}
	found := map[netip.Prefix]bool{}
	for _, a := range have {
		p := prefix(a)
		if slices.Contains(want, p) {
			found[p] = true
			continue
		}
		if p.Addr().IsLinkLocalUnicast() {
			continue
		}
		// An old address of another range would draw the node's traffic for it.
		if err := netlink.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return changed, fmt.Errorf("remove %s: %w", p, err)
		}
		changed = append(changed, "-"+p.String())
	}
	for _, p := range want {
		if found[p] {
			continue
		}
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			// Pods use it at once; duplicate detection would take a second, and the range is ours alone.
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(link, a); err != nil && !errors.Is(err, unix.EEXIST) {
			return changed, fmt.Errorf("add %s: %w", p, err)
		}
		changed = append(changed, "+"+p.String())
	}
	return changed, nil
}

// list reads the addresses; a dump that a change interrupted is read again.
func list(link netlink.Link) ([]netlink.Addr, error) {
	for range 10 {
		addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return addrs, err
		}
	}
	return nil, fmt.Errorf("list addresses: %w ten times", netlink.ErrDumpInterrupted)
}

func prefix(a netlink.Addr) netip.Prefix {
	ip, _ := netip.AddrFromSlice(a.IP)
	ones, _ := a.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), ones)
}

// NewMAC returns a random address of those for local use. The gateway gets one
// of our own, written down in OVSDB, so that nobody else changes it later.
func NewMAC() ifstore.MAC {
	var m ifstore.MAC
	rand.Read(m[:]) // never fails, see crypto/rand
	m[0] = m[0]&^1 | 2
	return m
}
