package uplink

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	goleak.VerifyTestMain(m)
}

const (
	device = "eth0"
	bridge = "br-phy"
)

// addresses of the node and of its router, which is the other end of the cable.
var (
	node4, node6     = netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("2001:db8::10/64")
	router4, router6 = netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64")
)

// node is a node with a cable to its router and an Open vSwitch.
type node struct {
	t     *testing.T
	sw    *vswitchtest.Switch
	far   string // the router's namespace
	state string
	had   Record // what the device has, to begin with
}

func newNode(t *testing.T) *node {
	t.Helper()
	if err := undeafen(); err != nil {
		t.Fatal(err)
	}
	// Of a switch that is killed the interfaces stay.
	t.Cleanup(func() {
		for _, name := range []string{bridge, "br-ext"} {
			if link, err := netlink.LinkByName(name); err == nil {
				_ = netlink.LinkDel(link)
			}
		}
	})
	n := &node{t: t, sw: vswitchtest.Start(t), state: filepath.Join(t.TempDir(), "uplink.json")}
	n.plug()
	n.had = n.has(device)
	if len(n.had.Addresses) != 2 || len(n.had.Routes) != 3 {
		t.Fatalf("the device has %+v", n.had)
	}
	n.reachable("at first")
	return n
}

// plug makes the cable; the device has its addresses from then on.
func (n *node) plug() {
	n.t.Helper()
	var err error
	if n.far, err = nettest.NewNS("router"); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := nettest.DeleteNS(n.far); err != nil {
			n.t.Error(err)
		}
	})
	there, err := os.Open(n.far)
	if err != nil {
		n.t.Fatal(err)
	}
	defer there.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = device
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(there.Fd()))}); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = netlink.LinkDel(n.link(device)) })
	if err := lab.In(n.far, func() error { return bringUp("eth0", router4, router6) }); err != nil {
		n.t.Fatal(err)
	}
	n.configure()
}

// configure gives the device what a DHCP client or a boot script would.
func (n *node) configure() {
	n.t.Helper()
	if err := bringUp(device, node4, node6); err != nil {
		n.t.Fatal(err)
	}
	link := n.link(device)
	for _, r := range []*netlink.Route{
		{LinkIndex: link.Attrs().Index, Gw: router4.Addr().AsSlice(), Protocol: 16},
		{LinkIndex: link.Attrs().Index, Gw: router6.Addr().AsSlice(), MTU: 1400},
		{LinkIndex: link.Attrs().Index, Dst: ipNet(netip.MustParsePrefix("198.51.100.0/24")), Gw: router4.Addr().AsSlice(), Priority: 50, Table: 100},
	} {
		if err := netlink.RouteReplace(r); err != nil {
			n.t.Fatal(err)
		}
	}
}

func bringUp(name string, addresses ...netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := netlink.AddrReplace(link, Address{Prefix: a}.on()); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

func (n *node) link(name string) netlink.Link {
	n.t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		n.t.Fatal(err)
	}
	return link
}

// has returns what an interface has, in an order of its own.
func (n *node) has(name string) Record {
	n.t.Helper()
	r, err := snapshot(n.link(name))
	if err != nil {
		n.t.Fatal(err)
	}
	slices.SortFunc(r.Addresses, func(a, b Address) int { return a.Prefix.Compare(b.Prefix) })
	slices.SortFunc(r.Routes, func(a, b Route) int { return a.Dst.Compare(b.Dst) })
	return r
}

// reachable demands that router and node hear each other, in both families.
func (n *node) reachable(when string) {
	n.t.Helper()
	for _, pair := range [][2]netip.Prefix{{router4, node4}, {router6, node6}} {
		if err := n.answers(pair[0].Addr(), pair[1].Addr()); err != nil {
			n.t.Errorf("%s: %v", when, err)
		}
	}
}

// answers waits for an answer: neighbours that are unknown or were somewhere else
// a moment ago take a packet or two.
func (n *node) answers(from, to netip.Addr) error {
	ctx, cancel := context.WithTimeout(n.t.Context(), 20*time.Second)
	defer cancel()
	return lab.Until(ctx, func() error {
		_, err := lab.Ping(n.far, from, to, 56, time.Second)
		return err
	})
}

// mover is one process: it ends with the returned function.
func (n *node) mover() (*Mover, func()) {
	n.t.Helper()
	c, err := vswitch.New(ovsdb(n.sw))
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			n.t.Error(err)
		}
	})
	return New(n.config(c)), func() { cancel(); wg.Wait() }
}

func ovsdb(sw *vswitchtest.Switch) vswitch.Config {
	return vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Bridge: bridge, Datapath: "netdev", Standalone: true}
}

func (n *node) config(c *vswitch.Client) Config {
	return Config{OVS: c, Bridge: bridge, State: n.state, Period: time.Minute,
		Device: func() (string, error) { return Holder([]netip.Addr{node4.Addr(), node6.Addr()}, bridge) }}
}

// move moves the device as one process, and returns the outcomes.
func (n *node) move(dry bool) (list []step.Outcome) {
	n.t.Helper()
	m, end := n.mover()
	defer end()
	ctx, cancel := context.WithTimeout(n.t.Context(), moveTime)
	defer cancel()
	if err := m.Move(ctx, dry, func(r step.Result) { list = append(list, r.Outcome) }); err != nil {
		n.t.Fatalf("move: %v", err)
	}
	return list
}

func (n *node) restore() {
	n.t.Helper()
	m, end := n.mover()
	defer end()
	ctx, cancel := context.WithTimeout(n.t.Context(), moveTime)
	defer cancel()
	if err := m.Restore(ctx); err != nil {
		n.t.Fatalf("restore: %v", err)
	}
}

// wantMoved demands that the bridge's interface has what the device had.
func (n *node) wantMoved(when string) {
	n.t.Helper()
	if err := n.isMoved(); err != nil {
		n.t.Errorf("%s: %v", when, err)
	}
	n.reachable(when)
}

func (n *node) isMoved() error {
	if _, err := netlink.LinkByName(bridge); err != nil {
		return err
	}
	want := n.had
	want.Device = bridge
	if got := n.has(bridge); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("the bridge's interface has %+v, want %+v", got, want)
	}
	if left := n.has(device); len(left.Addresses)+len(left.Routes) > 0 {
		return fmt.Errorf("the device still has %+v", left)
	}
	if quiet, err := deaf(); err != nil || !quiet {
		return fmt.Errorf("the kernel takes what the device receives: %v", err)
	}
	return nil
}

// wantRestored demands that all is as it was.
func (n *node) wantRestored(when string) {
	n.t.Helper()
	if got := n.has(device); !reflect.DeepEqual(got, n.had) {
		n.t.Errorf("%s: the device has %+v, had %+v", when, got, n.had)
	}
	if bridges, err := n.sw.Vsctl("list-br"); err != nil || bridges != "" {
		n.t.Errorf("%s: bridges %q %v", when, bridges, err)
	}
	if quiet, err := deaf(); err != nil || quiet {
		n.t.Errorf("%s: the kernel is deaf still: %v", when, err)
	}
	if Recorded(n.state) {
		n.t.Errorf("%s: the record is left", when)
	}
	n.reachable(when)
}
