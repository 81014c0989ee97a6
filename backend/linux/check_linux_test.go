package linux

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/ethtool"
	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/podnet"
)

// Each thing that CHECK looks at is broken in turn (CN-13).
func TestCheckFindsEveryDifference(t *testing.T) {
	l := newLinker(t, Config{DisableTXChecksum: true})
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hostEnd := func(t *testing.T, iface ifstore.Interface) netlink.Link {
		t.Helper()
		h, err := netlink.LinkByName(iface.Name)
		must(t, err)
		return h
	}
	container := func(fn func(*testing.T, *netlink.Handle, netlink.Link)) func(*testing.T, *ifstore.Interface) {
		return func(t *testing.T, iface *ifstore.Interface) {
			within(t, iface.NetNS, func(h *netlink.Handle) {
				eth0, err := h.LinkByName("eth0")
				must(t, err)
				fn(t, h, eth0)
			})
		}
	}
	tests := []struct {
		name string
		edit func(*testing.T, *ifstore.Interface)
		want []string
	}{
		{"container MAC", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			must(t, h.LinkSetHardwareAddr(eth0, net.HardwareAddr{2, 0, 0, 0, 0, 7}))
		}), []string{"container end: MAC address is 02:00:00:00:00:07, want "}},
		{"container MTU", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			must(t, h.LinkSetMTU(eth0, 1300))
		}), []string{"container end: MTU is 1300, want 1500"}},
		{"container end down", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			must(t, h.LinkSetDown(eth0))
		}), []string{"container end: is down", "host end", "no carrier", "route 0.0.0.0/0 via 10.1.2.1 is missing", "address fd00::3/64 is missing"}},
		{"IPv4 address", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			a, _ := netlink.ParseAddr("10.1.2.3/24")
			must(t, h.AddrDel(eth0, a))
		}), []string{"address 10.1.2.3/24 is missing"}},
		{"second IPv4 address", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			a, _ := netlink.ParseAddr("10.5.0.3/16")
			must(t, h.AddrDel(eth0, a))
		}), []string{"address 10.5.0.3/16 is missing"}},
		{"IPv6 address", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			a, _ := netlink.ParseAddr("fd00::3/64")
			must(t, h.AddrDel(eth0, a))
		}), []string{"address fd00::3/64 is missing"}},
		{"prefix length", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			a, _ := netlink.ParseAddr("fd00::3/64")
			must(t, h.AddrDel(eth0, a))
			a, _ = netlink.ParseAddr("fd00::3/72")
			must(t, h.AddrAdd(eth0, a))
		}), []string{"address fd00::3/64 is missing"}},
		{"IPv4 default route", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			must(t, h.RouteDel(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: net.IPv4(10, 1, 2, 1)}))
		}), []string{"route 0.0.0.0/0 via 10.1.2.1 is missing"}},
		{"IPv6 default route through another gateway", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			must(t, h.RouteDel(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: net.ParseIP("fd00::1")}))
			must(t, h.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: net.ParseIP("fd00::2")}))
		}), []string{"route ::/0 via fd00::1 is missing"}},
		{"renamed", container(func(t *testing.T, h *netlink.Handle, eth0 netlink.Link) {
			must(t, h.LinkSetDown(eth0))
			must(t, h.LinkSetName(eth0, "eth9"))
		}), []string{"interface eth0: no such interface"}},
		{"offload", func(t *testing.T, iface *ifstore.Interface) {
			inside(t, iface.NetNS, func() error { return ethtool.Set("eth0", ethtool.TXChecksum, true) })
		}, []string{"TX checksum offload is on"}},
		{"host MAC", func(t *testing.T, iface *ifstore.Interface) {
			must(t, netlink.LinkSetHardwareAddr(hostEnd(t, *iface), net.HardwareAddr{2, 0, 0, 0, 0, 8}))
		}, []string{"host end", "MAC address is 02:00:00:00:00:08"}},
		{"host MTU", func(t *testing.T, iface *ifstore.Interface) {
			must(t, netlink.LinkSetMTU(hostEnd(t, *iface), 1200))
		}, []string{"host end", "MTU is 1200"}},
		{"host end down", func(t *testing.T, iface *ifstore.Interface) {
			must(t, netlink.LinkSetDown(hostEnd(t, *iface)))
		}, []string{"host end", "is down", "container end: has no carrier"}},
		{"both ends gone", func(t *testing.T, iface *ifstore.Interface) {
			must(t, netlink.LinkDel(hostEnd(t, *iface)))
		}, []string{"host end: interface pod", "interface eth0: no such interface"}},
		{"not the peer", func(t *testing.T, iface *ifstore.Interface) {
			name := hostEnd(t, *iface).Attrs().Name
			must(t, netlink.LinkDel(hostEnd(t, *iface)))
			must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: iface.MAC[:]}, PeerName: "p"}))
			must(t, netlink.LinkSetAlias(hostEnd(t, *iface), alias(iface.Key)))
			within(t, iface.NetNS, func(h *netlink.Handle) {
				must(t, h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "p"}))
			})
		}, []string{"is not the peer of pod"}},
		{"another kind", func(t *testing.T, iface *ifstore.Interface) {
			must(t, netlink.LinkDel(hostEnd(t, *iface)))
			inside(t, iface.NetNS, func() error {
				return netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, Mode: netlink.TUNTAP_MODE_TAP})
			})
		}, []string{"is a tun, not a veth"}},
		{"alternative name only", func(t *testing.T, iface *ifstore.Interface) {
			must(t, netlink.LinkDel(hostEnd(t, *iface)))
			within(t, iface.NetNS, func(h *netlink.Handle) {
				other := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other"}, PeerName: "peer"}
				must(t, h.LinkAdd(other))
				must(t, h.LinkAddAltName(other, "eth0"))
			})
		}, []string{"eth0 is an alternative name of other"}},
		{"namespace gone", func(t *testing.T, iface *ifstore.Interface) {
			must(t, nettest.DeleteNS(iface.NetNS))
		}, []string{"network namespace is gone", "sandbox has ended"}},
		{"another record", func(t *testing.T, iface *ifstore.Interface) {
			iface.Addresses = append(iface.Addresses, addr("10.9.9.9/32", ""))
			iface.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("10.96.0.0/12"), MTU: 1200}}
			iface.MAC[5]++
			iface.MTU = 9000
		}, []string{"address 10.9.9.9/32 is missing", "route 10.96.0.0/12 via 10.1.2.1 is missing", "container end: MAC", "container end: MTU is 1500, want 9000", "host end"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			iface := link(t, l, podnet.Request{
				Key: ifstore.Key{ContainerID: "check", IfName: "eth0"}, NetNS: newNS(t),
				Addresses: []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1"), addr("10.5.0.3/16", ""), addr("fd00::3/64", "fd00::1")},
			})
			if err := l.Check(context.Background(), iface); err != nil {
				t.Fatalf("before: %v", err)
			}
			tt.edit(t, &iface)
			wantText(t, l.Check(context.Background(), iface), tt.want...)
		})
	}
}
