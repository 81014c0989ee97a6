package uplink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/vswitch"
)

func all(n int, o step.Outcome) []step.Outcome { return slices.Repeat([]step.Outcome{o}, n) }

func TestMoveAndRestore(t *testing.T) {
	n := newNode(t)
	// A dry run looks at everything and changes nothing.
	dry := n.move(true)
	if slices.Contains(dry, step.Failed) || !slices.Contains(dry, step.Planned) {
		t.Errorf("dry run: %v", dry)
	}
	n.wantRestored("after a dry run")
	if got := n.move(false); slices.Contains(got, step.Failed) || !slices.Contains(got, step.Changed) {
		t.Errorf("outcomes %v", got)
	}
	n.wantMoved("moved")
	if got := n.move(false); !slices.Equal(got, all(len(dry), step.Done)) {
		t.Errorf("a second time: %v", got)
	}
	n.wantMoved("moved a second time")
	for range 2 {
		n.restore()
		n.wantRestored("restored")
	}
}

// A process that is killed after any step leaves a node that can be reached; the
// next one goes on, or back.
func TestKilledAfterEveryStep(t *testing.T) {
	n := newNode(t)
	count := len(n.move(true))
	for _, undo := range []bool{false, true} {
		for k := range count {
			when := fmt.Sprintf("killed after step %d", k+1)
			n.killed(k + 1)
			n.reachable(when)
			if !undo {
				n.move(false)
				n.wantMoved(when)
			}
			n.restore()
			n.wantRestored(when)
		}
	}
}

// killed is a process that ends after k steps.
func (n *node) killed(k int) {
	n.t.Helper()
	m, end := n.mover()
	defer end()
	ctx, cancel := context.WithTimeout(n.t.Context(), moveTime)
	defer cancel()
	r, ours, err := m.find(ctx)
	if err != nil || !ours {
		n.t.Fatalf("find: %v %v", ours, err)
	}
	if err := step.Run(ctx, m.steps(r)[:k], false, func(step.Result) {}); err != nil {
		n.t.Fatal(err)
	}
}

// The longest steps are many requests to the kernel; a process may be killed between two.
func TestKilledWithinAMove(t *testing.T) {
	for name, cut := range map[string]func(n *node, r Record) error{
		"one address given": func(n *node, r Record) error {
			return Record{Device: r.Device, Bridge: bridge, Addresses: r.Addresses[:1]}.give(n.link(bridge))
		},
		"all given, nothing taken": func(n *node, r Record) error { return r.give(n.link(bridge)) },
		"all given, routes taken": func(n *node, r Record) error {
			return errors.Join(r.give(n.link(bridge)), Record{Device: r.Device, Routes: r.Routes}.take(n.link(device)))
		},
		"all given, one address left": func(n *node, r Record) error {
			return errors.Join(r.give(n.link(bridge)), Record{Device: r.Device, Routes: r.Routes, Addresses: r.Addresses[:1]}.take(n.link(device)))
		},
		"moved, and half on the way back": func(n *node, r Record) error {
			return errors.Join(r.move(), deafen(device), undeafen(), Record{Device: r.Device, Addresses: r.Addresses[:1]}.give(n.link(device)))
		},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, record lost %v", name, lost), func(t *testing.T) {
				n := newNode(t)
				n.killed(5) // the bridge's interface is ready
				r, ok, err := load(n.state)
				if err != nil || !ok {
					t.Fatalf("record: %v %v", ok, err)
				}
				if err := cut(n, r); err != nil {
					t.Fatal(err)
				}
				n.reachable("killed")
				if lost {
					if err := os.Remove(n.state); err != nil {
						t.Fatal(err)
					}
				}
				n.move(false)
				n.wantMoved("gone on")
				n.restore()
				n.wantRestored("restored")
			})
		}
	}
}

// keep runs a mover; the returned function ends it.
func (n *node) keep() (end func()) {
	n.t.Helper()
	c, err := vswitch.New(ovsdb(n.sw))
	if err != nil {
		n.t.Fatal(err)
	}
	m := New(n.config(c))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			n.t.Error(err)
		}
	}
}

func (n *node) until(what string, check func() error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	if err := lab.Until(ctx, check); err != nil {
		n.t.Fatalf("%s: %v", what, err)
	}
}

// While ovs-vswitchd is down the device has the node's addresses; without that the
// node would be cut off from whatever could start it again.
func TestOpenVSwitchRestarts(t *testing.T) {
	n := newNode(t)
	defer n.keep()()
	n.until("moved", n.isMoved)
	for range 2 {
		if err := n.sw.KillVswitchd(); err != nil {
			t.Fatal(err)
		}
		n.until("given back", func() error {
			if got := n.has(device); len(got.Addresses) != 2 || len(got.Routes) != 3 {
				return fmt.Errorf("the device has %+v", got)
			}
			return nil
		})
		n.reachable("without ovs-vswitchd")
		if err := n.sw.StartVswitchd(); err != nil {
			t.Fatal(err)
		}
		n.until("moved again", n.isMoved)
		n.reachable("with ovs-vswitchd again")
	}
	// What a DHCP client gives the device later is moved, too.
	extra := Address{Prefix: netip.MustParsePrefix("192.0.2.11/24")}
	if err := netlink.AddrReplace(n.link(device), extra.on()); err != nil {
		t.Fatal(err)
	}
	n.until("a new address", func() error {
		if got := n.has(bridge); !slices.Contains(got.Addresses, extra) {
			return fmt.Errorf("the bridge's interface has %+v", got)
		}
		if left := n.has(device); len(left.Addresses) > 0 {
			return fmt.Errorf("the device has %+v", left)
		}
		return nil
	})
	if err := n.answers(router4.Addr(), extra.Prefix.Addr()); err != nil {
		t.Error(err)
	}
}

// An agent that starts while ovs-vswitchd is down finds a node that is cut off, and
// mends that first: it could not even ask the API server before.
func TestRecoverNeedsNoOpenVSwitch(t *testing.T) {
	n := newNode(t)
	n.move(false)
	if err := n.sw.KillVswitchd(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Recover(t.Context(), n.state); err != nil {
			t.Fatal(err)
		}
		n.reachable("recovered")
	}
	if err := n.sw.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.move(false)
	n.wantMoved("moved again")
	// With an interface to have the addresses there is nothing to recover.
	if err := Recover(t.Context(), n.state); err != nil {
		t.Fatal(err)
	}
	n.wantMoved("recovered while all is well")
}

// After a boot the device has its addresses again, and the record is gone; the
// database may be left, with the device on the bridge.
func TestReboot(t *testing.T) {
	n := newNode(t)
	n.move(false)
	if err := n.sw.StopVswitchd(); err != nil {
		t.Fatal(err)
	}
	// The kernel that boots knows of no rules and no addresses.
	if err := errors.Join(os.Remove(n.state), undeafen()); err != nil {
		t.Fatal(err)
	}
	if link, err := netlink.LinkByName(bridge); err == nil {
		if err := netlink.LinkDel(link); err != nil {
			t.Fatal(err)
		}
	}
	n.configure()
	n.reachable("booted")
	if err := n.sw.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.move(false)
	n.wantMoved("moved after the boot")
}

// The record is lost while the device is moved: the port's mark tells which it was.
func TestLostRecord(t *testing.T) {
	n := newNode(t)
	n.move(false)
	if err := os.Remove(n.state); err != nil {
		t.Fatal(err)
	}
	n.move(false)
	n.wantMoved("without the record")
	if err := os.Remove(n.state); err != nil {
		t.Fatal(err)
	}
	n.restore()
	n.wantRestored("restored without the record")
}

func TestWhatAnOperatorMadeStays(t *testing.T) {
	n := newNode(t)
	if _, err := n.sw.Vsctl("add-br", "br-ext", "--", "set", "bridge", "br-ext", "datapath_type=netdev"); err != nil {
		t.Fatal(err)
	}
	r := n.had
	if err := netlink.LinkSetUp(n.link("br-ext")); err != nil {
		t.Fatal(err)
	}
	if err := r.give(n.link("br-ext")); err != nil {
		t.Fatal(err)
	}
	if err := r.take(n.link(device)); err != nil {
		t.Fatal(err)
	}
	if got := n.move(false); len(got) != 0 || Recorded(n.state) {
		t.Errorf("steps %v", got)
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name  string
		make  func(n *node) error
		words []string
	}{
		{"on another bridge of Open vSwitch", func(n *node) error {
			_, err := n.sw.Vsctl("add-br", "br-ext", "--", "set", "bridge", "br-ext", "datapath_type=netdev", "--", "add-port", "br-ext", device)
			return err
		}, []string{device, "br-ext", "del-port"}},
		{"addresses on two interfaces", func(n *node) error {
			if err := netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tap0"}, Mode: netlink.TUNTAP_MODE_TAP}); err != nil {
				return err
			}
			n.t.Cleanup(func() { _ = netlink.LinkDel(n.link("tap0")) })
			return errors.Join(netlink.AddrDel(n.link(device), Address{Prefix: node6}.on()), bringUp("tap0", node6))
		}, []string{device, "tap0", "several interfaces"}},
		{"no interface has the address", func(n *node) error { return n.had.take(n.link(device)) }, []string{node4.Addr().String(), "--node-ip"}},
		{"part of a bridge of Linux", func(n *node) error {
			br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
			if err := netlink.LinkAdd(br); err != nil {
				return err
			}
			n.t.Cleanup(func() { _ = netlink.LinkDel(br) })
			return netlink.LinkSetMaster(n.link(device), br)
		}, []string{device, "bridge br0"}},
		{"another interface is made on it", func(n *node) error {
			return netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "mac7", ParentIndex: n.link(device).Attrs().Index}, Mode: netlink.MACVLAN_MODE_BRIDGE})
		}, []string{device, "mac7"}},
		{"moved to another bridge before", func(n *node) error { return Record{Device: device, Bridge: "br-old"}.save(n.state) }, []string{"br-old", "restore-uplink"}},
		{"a record that cannot be read", func(n *node) error { return os.WriteFile(n.state, []byte("{"), 0o600) }, []string{"uplink.json", "record"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t)
			if err := test.make(n); err != nil {
				t.Fatal(err)
			}
			before := n.has(device)
			m, end := n.mover()
			defer end()
			ctx, cancel := context.WithTimeout(t.Context(), moveTime)
			defer cancel()
			err := m.Move(ctx, false, func(r step.Result) { t.Errorf("step %+v", r) })
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range test.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if after := n.has(device); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("the device has %+v, had %+v", after, before)
			}
		})
	}
}
