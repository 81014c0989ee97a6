package cluster

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/ethtool"
)

const (
	fabricName = "fabric"
	uplinkName = "eth0"
)

// within calls f with netlink in a machine's network namespace.
func (m *machine) within(f func(*netlink.Handle) error) error {
	ns, err := netns.GetFromPath(m.NetNS())
	if err != nil {
		return fmt.Errorf("network namespace of %s: %w", m.Name, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("netlink in %s: %w", m.Name, err)
	}
	defer h.Close()
	return f(h)
}

// weave makes the fabric in the control plane's namespace.
func (c *Cluster) weave() error {
	return c.control.within(func(h *netlink.Handle) error {
		if err := up(h, "lo"); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = fabricName
		if err := h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("bridge %s: %w", fabricName, err)
		}
		return address(h, fabricName, c.cfg.fabric(1))
	})
}

// plug connects a node that was booted: its eth0 to the fabric, the control
// plane as its default router.
func (c *Cluster) plug(n *Node) error {
	there, err := os.Open(n.NetNS())
	if err != nil {
		return err
	}
	defer there.Close()
	err = c.control.within(func(h *netlink.Handle) error {
		bridge, err := h.LinkByName(fabricName)
		if err != nil {
			return err
		}
		// The kernel takes its time to end the namespace of a node that was rebooted.
		if old, err := h.LinkByName(n.Name); err == nil {
			if err := h.LinkDel(old); err != nil {
				return fmt.Errorf("old cable of %s: %w", n.Name, err)
			}
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MasterIndex = n.Name, bridge.Attrs().Index
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: uplinkName, PeerNamespace: netlink.NsFd(int(there.Fd()))}); err != nil {
			return fmt.Errorf("cable of %s: %w", n.Name, err)
		}
		return up(h, n.Name)
	})
	if err != nil {
		return err
	}
	return n.within(func(h *netlink.Handle) error {
		if err := up(h, "lo"); err != nil {
			return err
		}
		if err := address(h, uplinkName, c.cfg.fabric(n.number)); err != nil {
			return err
		}
		for _, router := range c.cfg.fabric(1) {
			if err := h.RouteReplace(&netlink.Route{Gw: router.Addr().AsSlice()}); err != nil {
				return fmt.Errorf("default route of %s by %s: %w", n.Name, router.Addr(), err)
			}
		}
		return nil
	})
}

// CompleteChecksums makes the control plane send packets with their checksums, and no
// larger than the MTU, as they would come over a wire.
func (c *Cluster) CompleteChecksums() error {
	return lab.In(c.ControlNS(), func() error { return ethtool.Set(fabricName, ethtool.TXChecksum, false) })
}

func up(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// address gives an interface its addresses and sets it up. Duplicates are
// impossible here, so nobody waits for their detection.
func address(h *netlink.Handle, name string, prefixes []netip.Prefix) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, p := range prefixes {
		a := &netlink.Addr{IPNet: ipNet(p)}
		if p.Addr().Is6() {
			a.Flags = netlinkNoDAD
		}
		if err := h.AddrAdd(link, a); err != nil {
			return fmt.Errorf("address %s on %s: %w", p, name, err)
		}
	}
	return up(h, name)
}

// netlinkNoDAD is IFA_F_NODAD.
const netlinkNoDAD = 0x02

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// RoutePods gives the control plane and every node a route to the Pods of each
// node, for CNI plugins that do not do it. cidrs are the nodes' Pod CIDRs in the
// order of Nodes.
func (c *Cluster) RoutePods(cidrs [][]netip.Prefix) error {
	return c.routePods(cidrs, append([]*machine{&c.control}, machines(c.nodes)...))
}

// RouteControl gives the control plane alone those routes: an API server that
// shall speak to Pods, for kubectl's proxy or for webhooks, has to have a way.
func (c *Cluster) RouteControl(cidrs [][]netip.Prefix) error {
	return c.routePods(cidrs, []*machine{&c.control})
}

func (c *Cluster) routePods(cidrs [][]netip.Prefix, routers []*machine) error {
	for i, n := range c.nodes {
		for _, m := range routers {
			if m == &n.machine {
				continue
			}
			err := m.within(func(h *netlink.Handle) error { return routes(h, cidrs[i], c.cfg.fabric(n.number)) })
			if err != nil {
				return fmt.Errorf("%s: routes to the Pods of %s: %w", m.Name, n.Name, err)
			}
		}
	}
	return nil
}

func machines(nodes []*Node) []*machine {
	list := make([]*machine, len(nodes))
	for i, n := range nodes {
		list[i] = &n.machine
	}
	return list
}

func routes(h *netlink.Handle, cidrs, routers []netip.Prefix) error {
	for _, cidr := range cidrs {
		for _, router := range routers {
			if router.Addr().Is4() != cidr.Addr().Is4() {
				continue
			}
			if err := h.RouteReplace(&netlink.Route{Dst: ipNet(cidr), Gw: router.Addr().AsSlice()}); err != nil {
				return fmt.Errorf("%s by %s: %w", cidr, router.Addr(), err)
			}
		}
	}
	return nil
}
