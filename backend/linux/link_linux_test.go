package linux

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/ethtool"
	"github.com/antrea-lite/podnet/podnet"
)

// layout is what a test sees of a container's namespace.
type layout struct {
	MAC    string
	MTU    int
	Up     bool
	LoUp   bool
	Addrs  []string // permanent, without link-local ones that the kernel made
	Routes []string // of the main table, static ones only
}

func layoutOf(t *testing.T, path, ifName string) layout {
	t.Helper()
	var got layout
	within(t, path, func(h *netlink.Handle) {
		lo, err := h.LinkByName("lo")
		if err != nil {
			t.Fatal(err)
		}
		l, err := h.LinkByName(ifName)
		if err != nil {
			t.Fatal(err)
		}
		got.LoUp, got.Up = lo.Attrs().Flags&net.FlagUp != 0, l.Attrs().Flags&net.FlagUp != 0
		got.MAC, got.MTU = l.Attrs().HardwareAddr.String(), l.Attrs().MTU
		addrs, err := h.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			if a.IP.IsLinkLocalUnicast() {
				continue
			}
			if a.Flags&unix.IFA_F_TENTATIVE != 0 {
				t.Errorf("address %v is tentative", a)
			}
			got.Addrs = append(got.Addrs, a.IPNet.String())
		}
		routes, err := h.RouteList(l, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range routes {
			if r.Protocol != unix.RTPROT_STATIC {
				continue
			}
			s := r.Dst.String()
			if r.Gw != nil {
				s += " via " + r.Gw.String()
			}
			if r.MTU != 0 {
				s += fmt.Sprint(" mtu ", r.MTU)
			}
			got.Routes = append(got.Routes, s)
		}
	})
	slices.Sort(got.Addrs)
	slices.Sort(got.Routes)
	return got
}

func TestLinkMakesWhatWasAsked(t *testing.T) {
	prefix := netip.MustParsePrefix
	tests := []struct {
		name string
		edit func(*podnet.Request)
		want layout
	}{
		{"IPv4", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1")}
		}, layout{Addrs: []string{"10.1.2.3/24"}, Routes: []string{"0.0.0.0/0 via 10.1.2.1"}}},
		{"IPv6", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("fd00::3/64", "fd00::1")}
		}, layout{Addrs: []string{"fd00::3/64"}, Routes: []string{"::/0 via fd00::1"}}},
		{"dual stack, own MAC and MTU", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1"), addr("fd00::3/64", "fd00::1")}
			r.MAC, r.MTU = ifstore.MAC{0x02, 1, 2, 3, 4, 5}, 1400
		}, layout{MAC: "02:01:02:03:04:05", MTU: 1400,
			Addrs: []string{"10.1.2.3/24", "fd00::3/64"}, Routes: []string{"0.0.0.0/0 via 10.1.2.1", "::/0 via fd00::1"}}},
		{"two addresses of a family", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1"), addr("10.9.9.9/16", "10.9.0.1"), addr("fd00::3/64", "")}
		}, layout{Addrs: []string{"10.1.2.3/24", "10.9.9.9/16", "fd00::3/64"}, Routes: []string{"0.0.0.0/0 via 10.1.2.1"}}},
		{"gateway outside the subnet", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("10.1.2.3/32", "169.254.1.1"), addr("fd00::3/128", "fd01::1")}
		}, layout{Addrs: []string{"10.1.2.3/32", "fd00::3/128"},
			Routes: []string{"0.0.0.0/0 via 169.254.1.1", "169.254.1.1/32", "::/0 via fd01::1", "fd01::1/128"}}},
		{"link-local gateway", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("fd00::3/128", "fe80::1")}
		}, layout{Addrs: []string{"fd00::3/128"}, Routes: []string{"::/0 via fe80::1"}}},
		{"routes of the request", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1"), addr("fd00::3/64", "fd00::1")}
			r.Routes = []ifstore.Route{
				{Dst: prefix("10.96.0.0/12"), MTU: 1300},
				{Dst: prefix("192.168.7.9/16"), GW: netip.MustParseAddr("10.1.2.9")},
				{Dst: prefix("192.168.0.0/16"), GW: netip.MustParseAddr("10.1.2.9")},
			}
		}, layout{Addrs: []string{"10.1.2.3/24", "fd00::3/64"},
			Routes: []string{"10.96.0.0/12 via 10.1.2.1 mtu 1300", "192.168.0.0/16 via 10.1.2.9", "::/0 via fd00::1"}}},
		{"route on the link", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("10.1.2.3/24", "")}
			r.Routes = []ifstore.Route{{Dst: prefix("172.16.0.0/12")}}
		}, layout{Addrs: []string{"10.1.2.3/24"}, Routes: []string{"172.16.0.0/12"}}},
		{"no IPAM", func(r *podnet.Request) { r.NoIPAM, r.Addresses = true, nil }, layout{}},
		{"a long container id and an odd interface name", func(r *podnet.Request) {
			r.ContainerID, r.IfName, r.Addresses = strings.Repeat("x.-_", 100), "net1.ä"[:4]+"-abcdefghij", nil
		}, layout{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLinker(t, Config{})
			req := request4("c1", newNS(t))
			tt.edit(&req)
			iface := link(t, l, req)

			want := tt.want
			want.Up, want.LoUp = true, true
			if want.MTU == 0 {
				want.MTU = 1500
			}
			if want.MAC == "" {
				want.MAC = containerMAC(req.Key).String()
			}
			slices.Sort(want.Addrs)
			slices.Sort(want.Routes)
			if diff := cmp.Diff(want, layoutOf(t, req.NetNS, req.IfName)); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
			if iface.MAC.String() != want.MAC || iface.MTU != want.MTU {
				t.Errorf("Link returned MAC %v and MTU %d, want %s and %d", iface.MAC, iface.MTU, want.MAC, want.MTU)
			}
			checkHostEnd(t, iface)
			if err := l.Check(context.Background(), iface); err != nil {
				t.Errorf("Check: %v", err)
			}
			if alive, err := l.Alive(context.Background(), iface); !alive || err != nil {
				t.Errorf("Alive: %v, %v", alive, err)
			}
			if err := l.Unlink(context.Background(), iface); err != nil {
				t.Errorf("Unlink: %v", err)
			}
			if left := hostLinks(t); len(left) > 0 {
				t.Errorf("left on the host: %v", left)
			}
		})
	}
}

func checkHostEnd(t *testing.T, iface ifstore.Interface) {
	t.Helper()
	if len(iface.Name) > 15 || !strings.HasPrefix(iface.Name, "pod") {
		t.Errorf("host name %q", iface.Name)
	}
	host, err := netlink.LinkByName(iface.Name)
	if err != nil {
		t.Fatal(err)
	}
	a := host.Attrs()
	if a.HardwareAddr.String() != hostMAC(iface.Key).String() || a.HardwareAddr[0]&3 != 2 {
		t.Errorf("host MAC %v", a.HardwareAddr)
	}
	if a.Flags&net.FlagUp == 0 || a.OperState != netlink.OperUp && a.OperState != netlink.OperUnknown && a.RawFlags&unix.IFF_LOWER_UP == 0 {
		t.Errorf("host end: flags %v, state %v", a.Flags, a.OperState)
	}
	if a.MTU != iface.MTU || a.Alias != alias(iface.Key) || a.NumTxQueues != 1 || a.NumRxQueues != 1 {
		t.Errorf("host end: MTU %d, alias %q, queues %d/%d", a.MTU, a.Alias, a.NumTxQueues, a.NumRxQueues)
	}
	addrs, err := netlink.AddrList(host, netlink.FAMILY_ALL)
	if err != nil || len(addrs) > 0 {
		t.Errorf("host end has addresses: %v, %v", addrs, err)
	}
	within(t, iface.NetNS, func(h *netlink.Handle) {
		container, err := h.LinkByName(iface.IfName)
		if err != nil || container.Attrs().Index != a.ParentIndex || container.Attrs().ParentIndex != a.Index {
			t.Errorf("not each other's peer: %v, %v", container, err)
		}
	})
}

// inside runs fn on a thread of the namespace.
func inside(t testing.TB, path string, fn func() error) {
	t.Helper()
	ns, err := openNetNS(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.close()
	if err := ns.run(fn); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path, file string) (s string) {
	t.Helper()
	inside(t, path, func() error {
		b, err := os.ReadFile(file)
		s = strings.TrimSpace(string(b))
		return err
	})
	return s
}

// Runtimes switch IPv6 off in new sandboxes; an IPv6 address needs it on.
func TestLinkEnablesIPv6(t *testing.T) {
	for _, scope := range []string{"default", "all"} {
		path := newNS(t)
		inside(t, path, func() error { return writeSysctl(confIPv6+scope+"/disable_ipv6", "1") })
		req := request4("c1", path)
		req.Addresses = append(req.Addresses, addr("fd00::3/64", "fd00::1"))
		link(t, newLinker(t, Config{}), req)
		for file, want := range map[string]string{"eth0/disable_ipv6": "0", "lo/disable_ipv6": "0", "eth0/accept_ra": "0", "eth0/accept_dad": "0"} {
			if got := readFile(t, path, confIPv6+file); got != want {
				t.Errorf("%s disabled: %s = %s, want %s", scope, file, got, want)
			}
		}
		if got := layoutOf(t, path, "eth0"); !slices.Contains(got.Addrs, "fd00::3/64") || !slices.Contains(got.Routes, "::/0 via fd00::1") {
			t.Errorf("%s disabled: %+v", scope, got)
		}
	}
	// Without an IPv6 address the runtime's choice stands, and no router may advertise.
	path := newNS(t)
	inside(t, path, func() error { return writeSysctl(confIPv6+"default/disable_ipv6", "1") })
	link(t, newLinker(t, Config{}), request4("c2", path))
	if a, b := readFile(t, path, confIPv6+"eth0/disable_ipv6"), readFile(t, path, confIPv6+"eth0/accept_ra"); a != "1" || b != "0" {
		t.Errorf("IPv4 only: disable_ipv6 = %s, accept_ra = %s", a, b)
	}
}

func TestTXChecksumOffload(t *testing.T) {
	for _, off := range []bool{false, true} {
		path := newNS(t)
		iface := link(t, newLinker(t, Config{DisableTXChecksum: off}), request4(fmt.Sprint("c", off), path))
		inside(t, path, func() error {
			on, err := ethtool.Get("eth0", ethtool.TXChecksum)
			if on == off {
				t.Errorf("DisableTXChecksum %v: offload on: %v", off, on)
			}
			return err
		})
		err := newLinker(t, Config{DisableTXChecksum: true}).Check(context.Background(), iface)
		if off != (err == nil) {
			t.Errorf("DisableTXChecksum %v: Check: %v", off, err)
		}
	}
}

// A second interface must not take the default route of the first, nor fail for it.
func TestSecondInterfaceLeavesDefaultRoute(t *testing.T) {
	l, path := newLinker(t, Config{}), newNS(t)
	first := link(t, l, request4("c1", path))
	req := request4("c1", path)
	req.IfName, req.Addresses = "net1", []ifstore.Address{addr("10.7.0.3/16", "10.7.0.1")}
	second := link(t, l, req)
	if got := layoutOf(t, path, "net1").Routes; len(got) > 0 {
		t.Errorf("routes of net1: %v", got)
	}
	if got := layoutOf(t, path, "eth0").Routes; !slices.Equal(got, []string{"0.0.0.0/0 via 10.1.2.1"}) {
		t.Errorf("routes of eth0: %v", got)
	}
	for _, iface := range []ifstore.Interface{first, second} {
		if err := l.Check(context.Background(), iface); err != nil {
			t.Error(err)
		}
	}
}
