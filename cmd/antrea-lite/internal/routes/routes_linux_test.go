package routes

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	goleak.VerifyTestMain(m)
}

// node makes an uplink with an address and a gateway, as on a node.
func node(t *testing.T) {
	t.Helper()
	for name, addrs := range map[string][]string{"uplink": {"192.0.2.1/24", "2001:db8::1/64"}, "gw0": {"10.1.0.1/24", "fd00:1::1/64"}} {
		link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP}
		if err := netlink.LinkAdd(link); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { netlink.LinkDel(link) })
		for _, a := range addrs {
			addr, err := netlink.ParseAddr(a)
			if err != nil {
				t.Fatal(err)
			}
			addr.Flags = 2 // IFA_F_NODAD
			if err := netlink.AddrAdd(link, addr); err != nil {
				t.Fatal(err)
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
	}
}

func kernel(t *testing.T) (out []string) {
	t.Helper()
	routes, _, err := list()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Dst.String()+" via "+r.Gw.String()+" dev "+link.Attrs().Name)
	}
	slices.Sort(out)
	return out
}

func via(dst, gw string) Route {
	return Route{Dst: netip.MustParsePrefix(dst), Via: netip.MustParseAddr(gw)}
}

func TestApplyFollowsTheNodes(t *testing.T) {
	node(t)
	if err := netlink.LinkSetUp(must(netlink.LinkByName("lo"))(t)); err != nil {
		t.Fatal(err)
	}
	// A route of somebody else is left alone.
	foreign := &netlink.Route{Dst: &net.IPNet{IP: net.IPv4(10, 200, 0, 0).To4(), Mask: net.CIDRMask(24, 32)}, Gw: net.IPv4(192, 0, 2, 77).To4(), Protocol: 4}
	if err := netlink.RouteAdd(foreign); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name    string
		want    []Route
		kernel  []string
		changed int
	}{
		{"two nodes, both families", []Route{via("10.2.0.0/24", "192.0.2.2"), via("fd00:2::/64", "2001:db8::2"), via("10.3.0.0/24", "192.0.2.3")},
			[]string{"10.2.0.0/24 via 192.0.2.2 dev uplink", "10.3.0.0/24 via 192.0.2.3 dev uplink", "fd00:2::/64 via 2001:db8::2 dev uplink"}, 3},
		{"again", []Route{via("10.2.0.0/24", "192.0.2.2"), via("fd00:2::/64", "2001:db8::2"), via("10.3.0.0/24", "192.0.2.3")},
			[]string{"10.2.0.0/24 via 192.0.2.2 dev uplink", "10.3.0.0/24 via 192.0.2.3 dev uplink", "fd00:2::/64 via 2001:db8::2 dev uplink"}, 0},
		{"a node has another address", []Route{via("10.2.0.0/24", "192.0.2.22"), via("fd00:2::/64", "2001:db8::22"), via("10.3.0.0/24", "192.0.2.3")},
			[]string{"10.2.0.0/24 via 192.0.2.22 dev uplink", "10.3.0.0/24 via 192.0.2.3 dev uplink", "fd00:2::/64 via 2001:db8::22 dev uplink"}, 2},
		{"a node goes, another takes its range", []Route{via("10.2.0.0/24", "192.0.2.3")}, []string{"10.2.0.0/24 via 192.0.2.3 dev uplink"}, 3},
		{"through the tunnel", []Route{{Dst: netip.MustParsePrefix("10.2.0.0/24"), Via: netip.MustParseAddr("10.2.0.1"), Device: "gw0", MTU: 1400}},
			[]string{"10.2.0.0/24 via 10.2.0.1 dev gw0"}, 1},
		{"none", nil, nil, 1},
	} {
		changed, err := Apply(step.want)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := kernel(t); !slices.Equal(got, step.kernel) {
			t.Errorf("%s: kernel has %q, want %q", step.name, got, step.kernel)
		}
		if len(changed) < step.changed || step.changed == 0 && len(changed) != 0 {
			t.Errorf("%s: changed %q", step.name, changed)
		}
	}
	if r, err := netlink.RouteListFiltered(netlink.FAMILY_V4, foreign, netlink.RT_FILTER_DST); err != nil || len(r) != 1 {
		t.Errorf("the stranger's route: %v %v", r, err)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// One node that cannot be reached keeps no other dark.
func TestApplyTellsWhichRouteFails(t *testing.T) {
	node(t)
	far := via("10.9.0.0/24", "198.51.100.9")
	if err := netlink.RouteAdd(&netlink.Route{Gw: net.IPv4(192, 0, 2, 254).To4()}); err != nil {
		t.Fatal(err)
	}
	_, err := Apply([]Route{far, via("10.2.0.0/24", "192.0.2.2")})
	if err == nil || !strings.Contains(err.Error(), "10.9.0.0/24") || !strings.Contains(err.Error(), "encap") {
		t.Errorf("error %v, want the route and the remedy", err)
	}
	if got := kernel(t); !slices.Equal(got, []string{"10.2.0.0/24 via 192.0.2.2 dev uplink"}) {
		t.Errorf("kernel has %q", got)
	}
}

// A route of somebody else to a node's range stays, be it the gateway's own.
func TestApplyReplacesNoStranger(t *testing.T) {
	node(t)
	all := func() string {
		list, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(list)
	}
	for dst, gw := range map[string]string{"10.7.0.0/24": "192.0.2.77", "fd00:7::/64": "2001:db8::77"} {
		_, to, err := net.ParseCIDR(dst)
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{Dst: to, Gw: net.ParseIP(gw), Protocol: 4})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before := all()
	for _, r := range []Route{via("10.1.0.0/24", "192.0.2.2"), via("10.7.0.0/24", "192.0.2.2"), via("fd00:7::/64", "2001:db8::2")} {
		if _, err := Apply([]Route{r}); err == nil || !strings.Contains(err.Error(), "in the way") {
			t.Errorf("%s: error %v", r, err)
		}
	}
	// What leads the same way already is well.
	if changed, err := Apply([]Route{via("10.7.0.0/24", "192.0.2.77"), via("fd00:7::/64", "2001:db8::77")}); err != nil || len(changed) > 0 {
		t.Errorf("the same way: %q %v", changed, err)
	}
	if after := all(); after != before {
		t.Errorf("routes before: %s\nafter: %s", before, after)
	}
}

func TestNeighboursOfTheTunnel(t *testing.T) {
	node(t)
	want := []Route{
		{Dst: netip.MustParsePrefix("10.2.0.0/24"), Via: netip.MustParseAddr("10.2.0.1"), Device: "gw0"},
		{Dst: netip.MustParsePrefix("fd00:2::/64"), Via: netip.MustParseAddr("fd00:2::1"), Device: "gw0"},
	}
	if _, err := Apply(want); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		link, err := netlink.LinkByName("gw0")
		if err != nil {
			t.Fatal(err)
		}
		list, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.HardwareAddr.String() == tunnelMAC.String() {
				n++
			}
		}
		return n
	}
	if n := count(); n != 2 {
		t.Errorf("%d neighbours, want 2", n)
	}
	if _, err := Apply(want[:1]); err != nil {
		t.Fatal(err)
	}
	if err := RemoveNeighbours("gw0", want[:1]); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("%d neighbours after a node went, want 1", n)
	}
}
