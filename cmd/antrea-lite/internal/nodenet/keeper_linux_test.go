package nodenet

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/masquerade"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/routes"
	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	goleak.VerifyTestMain(m)
}

type cluster struct {
	mu    sync.Mutex
	nodes []kube.Node
	known bool
}

func (c *cluster) set(known bool, nodes ...kube.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes, c.known = nodes, known
}

func (c *cluster) get() ([]kube.Node, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes, c.known
}

func device(t *testing.T, name, addr string) {
	t.Helper()
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP}
	a, err := netlink.ParseAddr(addr)
	if err == nil {
		err = netlink.LinkAdd(link)
	}
	if err == nil {
		err = netlink.AddrAdd(link, a)
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(link) })
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func routeCount(t *testing.T) int {
	t.Helper()
	list, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routes.Protocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func peer(n string) kube.Node {
	return kube.Node{Name: "node" + n, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10." + n + ".0.0/24")}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2." + n)}}
}

func TestKeeperFollowsTheNodes(t *testing.T) {
	device(t, "uplink", "192.0.2.1/24")
	device(t, "gw0", "10.1.0.1/24")
	c := &cluster{}
	k := New(Config{Gateway: "gw0", Own: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}, MTU: 1500, Masquerade: true, Period: time.Hour}, c.get)
	// Routes of an earlier process outlive the time in which the nodes are not known.
	earlier, _ := planRoutes(k.conf, []kube.Node{peer("2")})
	if _, err := routes.Apply(earlier); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Run(ctx) }()
	if err := errors.Join(k.Faults()...); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("before the nodes are known: %v", err)
	}
	if n := routeCount(t); n != 1 {
		t.Errorf("%d routes, want that of the earlier process", n)
	}
	c.set(true, peer("2"), peer("3"))
	k.Wake()
	until(t, "two routes", func() bool { return errors.Join(k.Faults()...) == nil && routeCount(t) == 2 })
	there := func() bool {
		ok, err := masquerade.Present()
		return ok && err == nil
	}
	if !there() {
		t.Error("no translation")
	}
	// Somebody flushes the rules.
	if err := masquerade.Remove(); err != nil {
		t.Fatal(err)
	}
	k.Wake()
	until(t, "translation again", there)
	// A node behind a router keeps no other dark, and is named.
	far := peer("9")
	far.Addresses = []netip.Addr{netip.MustParseAddr("198.51.100.9")}
	c.set(true, far, peer("3"))
	k.Wake()
	until(t, "one route and an error", func() bool {
		err := errors.Join(k.Faults()...)
		return routeCount(t) == 1 && err != nil && strings.Contains(err.Error(), "node node9: route 10.9.0.0/24")
	})
	c.set(true)
	k.Wake()
	until(t, "no routes", func() bool { return errors.Join(k.Faults()...) == nil && routeCount(t) == 0 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// traffic.noMasquerade counts from the restart of the agent on.
func TestKeeperRemovesTheTranslationOfAnEarlierAgent(t *testing.T) {
	device(t, "gw0", "10.1.0.1/24")
	own := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}
	for _, masq := range []bool{true, false} {
		k := New(Config{Gateway: "gw0", Own: own, Masquerade: masq}, nil)
		if err := k.look(klog.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if there, err := masquerade.Present(); err != nil || there != masq {
			t.Errorf("masquerade %v: table there %v, error %v", masq, there, err)
		}
	}
}

func TestFindUplink(t *testing.T) {
	device(t, "uplink", "192.0.2.1/24")
	got, err := FindUplink([]netip.Addr{netip.MustParseAddr("192.0.2.1")})
	if err != nil || got.Name != "uplink" || got.MTU != 1500 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := FindUplink([]netip.Addr{netip.MustParseAddr("192.0.2.7")}); err == nil || !strings.Contains(err.Error(), "192.0.2.7") {
		t.Errorf("error %v", err)
	}
}
