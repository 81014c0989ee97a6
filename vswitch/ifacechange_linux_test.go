package vswitch_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// A port whose type is switched gets its number then: the step that a port of a
// Windows Pod waits for. On Linux an internal port makes its own netdev.
func TestSetTypeGivesTheNumber(t *testing.T) {
	sw := vswitchtest.Start(t)
	var o observer
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Observer: &o})
	if _, err := c.EnsureBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	key := add(t, c, "typed")
	var pe *podnet.PortError
	if _, err := c.WaitOFPort(soon(t), key); !errors.As(err, &pe) {
		t.Fatalf("WaitOFPort without a netdev: %v", err)
	}
	w := c.WatchOFPorts()
	defer w.Close()
	for range 2 { // the second writes nothing
		if err := c.SetType(soon(t), key, "internal"); err != nil {
			t.Fatal(err)
		}
	}
	until(t, w, "a number", func() bool { n, err := c.OFPort(soon(t), key); return n > 0 && err == nil })
	if got := o.count("interface"); got != 1 {
		t.Errorf("%d transactions for one change", got)
	}
	ports, err := c.Ports(soon(t))
	if err != nil || len(ports) != 2 || ports[1].Type != "internal" {
		t.Errorf("ports %+v, %v", ports, err)
	}
	if err := c.SetType(soon(t), key, ""); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the number to go", func() bool { _, err := c.OFPort(soon(t), key); return err != nil })
}

func TestSetTypeRefuses(t *testing.T) {
	sw, c := setUp(t)
	first := add(t, c, "life1")
	vsctl(t, sw, "--no-wait", "del-port", br, "life1", "--", "add-port", br, "life1")
	w := c.WatchOFPorts()
	defer w.Close()
	until(t, w, "the new row", func() bool { _, err := c.OFPort(soon(t), first); return errors.Is(err, podnet.ErrNoPort) })
	for _, test := range []struct {
		name string
		key  podnet.PortKey
		typ  string
		want error
	}{
		{"an earlier life", first, "internal", podnet.ErrNoPort},
		{"a name that is not there", podnet.PortKey{Name: "nobody"}, "internal", podnet.ErrNoPort},
		{"the bridge's own port", podnet.PortKey{Name: br}, "", podnet.ErrBadRequest},
		{"a text that hangs the server up", podnet.PortKey{Name: "life1"}, "a\x00b", podnet.ErrBadRequest},
	} {
		if err := c.SetType(soon(t), test.key, test.typ); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	if out := vsctl(t, sw, "get", "interface", "life1", "type"); out != `""` {
		t.Errorf("the second life has type %s", out)
	}
}

// Ports of Pods that start at the same moment share transactions, and one that
// has gone does not spoil the others'.
func TestSetTypeIsJoined(t *testing.T) {
	sw := vswitchtest.Start(t)
	var o observer
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Observer: &o})
	if _, err := c.EnsureBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	const n = 60
	keys := make([]podnet.PortKey, n)
	each(n, func(i int) { keys[i] = add(t, c, fmt.Sprintf("jt%d", i)) })
	if err := c.DeletePort(soon(t), keys[7]); err != nil {
		t.Fatal(err)
	}
	each(n, func(i int) {
		if err := c.SetType(soon(t), keys[i], "dummy"); (err != nil) != (i == 7) {
			t.Errorf("%d: %v", i, err)
		}
	})
	ports, err := c.Ports(soon(t))
	if err != nil || len(ports) != n {
		t.Fatalf("%d ports, %v", len(ports), err)
	}
	for _, p := range ports {
		if p.Name != br && p.Type != "dummy" {
			t.Errorf("%s has type %q", p.Name, p.Type)
		}
	}
	if got := o.count("interface"); got > n/4 {
		t.Errorf("%d transactions for %d ports", got, n)
	}
}

// Without a request ovs-vswitchd gives the gateway the least MTU of all ports,
// and takes every other one away again.
func TestMTURequestHolds(t *testing.T) {
	sw, c := setUp(t)
	key, err := c.EnsureInternalPort(soon(t), "gw0", mac(t, "0a:00:00:00:00:01"), map[string]string{"podnet-owner": "test"})
	if err != nil {
		t.Fatal(err)
	}
	number(t, c, key)
	for range 2 {
		if err := c.SetMTURequest(soon(t), key, 1450); err != nil {
			t.Fatal(err)
		}
	}
	small := veth(t, "small0")
	l, err := netlink.LinkByName(small)
	if err == nil {
		err = netlink.LinkSetMTU(l, 1300)
	}
	if err != nil {
		t.Fatal(err)
	}
	number(t, c, add(t, c, small))
	vsctl(t, sw, "set", "bridge", br, "external_ids:look=again") // waits until it has looked at all ports
	gw, err := netlink.LinkByName("gw0")
	if err != nil || gw.Attrs().MTU != 1450 {
		t.Errorf("the gateway has MTU %d (%v), want 1450", gw.Attrs().MTU, err)
	}
}

// The device is opened anew under another number, and nobody else's changes.
func TestReopen(t *testing.T) {
	_, c := setUp(t)
	a, b := add(t, c, veth(t, "re1")), add(t, c, veth(t, "re2"))
	before, other := number(t, c, a), number(t, c, b)
	w := c.WatchOFPorts()
	defer w.Close()
	if err := c.Reopen(soon(t), a); err != nil {
		t.Fatal(err)
	}
	var after uint32
	until(t, w, "another number", func() bool {
		n, err := c.OFPort(soon(t), a)
		after = n
		return err == nil && n != before
	})
	if now := number(t, c, b); now != other || after == other {
		t.Errorf("the other port went from %d to %d; the reopened one has %d", other, now, after)
	}
	// And again; and two at once get numbers of their own.
	each(2, func(i int) {
		if err := c.Reopen(soon(t), []podnet.PortKey{a, b}[i]); err != nil {
			t.Error(err)
		}
	})
	until(t, w, "two new numbers", func() bool {
		x, xerr := c.OFPort(soon(t), a)
		y, yerr := c.OFPort(soon(t), b)
		return xerr == nil && yerr == nil && x != after && y != other && x != y
	})
	if err := c.DeletePort(soon(t), b); err != nil {
		t.Fatal(err)
	}
	if err := c.Reopen(soon(t), b); !errors.Is(err, podnet.ErrNoPort) {
		t.Errorf("a port that is gone: %v", err)
	}
}
