package vswitch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/podnet"
)

// A switch that is slow, in the shape it has on a starved node (facts 19, 24).
func TestNumberComesLate(t *testing.T) {
	sw, c := setUp(t)
	names := []string{veth(t, "sl1"), "psl1", veth(t, "sl2")}
	do(t, sw.PauseVswitchd)
	var keys []podnet.PortKey
	for _, n := range names {
		keys = append(keys, add(t, c, n))
	}
	if _, err := c.OFPort(soon(t), keys[0]); !errors.Is(err, podnet.ErrNoNumber) {
		t.Errorf("OFPort while ovs-vswitchd is stopped: %v", err)
	}
	gaveUp := errors.New("the caller gave up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, gaveUp)
	defer cancel()
	if _, err := c.WaitOFPort(ctx, keys[0]); !errors.Is(err, podnet.ErrNoNumber) || !errors.Is(err, gaveUp) {
		t.Errorf("WaitOFPort that ends: %v", err)
	}
	if ports, err := c.Ports(soon(t)); err != nil || len(ports) != 4 || ports[3].OFPort != 0 {
		t.Errorf("ports: %+v, %v", ports, err)
	}
	// A port that is deleted while it is waited for.
	gone := make(chan error, 1)
	go func() {
		_, err := c.WaitOFPort(soon(t), keys[2])
		gone <- err
	}()
	if err := c.DeletePort(soon(t), keys[2]); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; !errors.Is(err, podnet.ErrNoPort) {
		t.Errorf("WaitOFPort of a deleted port: %v", err)
	}
	var wg sync.WaitGroup
	for _, k := range keys[:2] {
		wg.Go(func() {
			if n, err := c.WaitOFPort(soon(t), k); n == 0 || err != nil {
				t.Errorf("%s: %d, %v", k.Name, n, err)
			}
		})
	}
	do(t, sw.ResumeVswitchd)
	wg.Wait()
}

// LATE-NETDEV: OVS's own words first, and the number when the netdev comes (fact 3).
func TestPortBeforeNetdev(t *testing.T) {
	_, c := setUp(t)
	w := c.WatchOFPorts()
	defer w.Close()
	key := add(t, c, "late")
	_, err := c.WaitOFPort(soon(t), key)
	var pe *podnet.PortError
	if !errors.As(err, &pe) || pe.OFPort != -1 || pe.Text == "" || pe.Name != "late" {
		t.Fatalf("WaitOFPort without a netdev: %v", err)
	}
	t.Log(err)
	veth(t, "late")
	until(t, w, "a number", func() bool { n, err := c.OFPort(soon(t), key); return n > 0 && err == nil })
}

// STEAL: numbers that were given move (fact 8).
func TestStolenNumberIsReported(t *testing.T) {
	sw, c := setUp(t)
	a, b := add(t, c, veth(t, "st1")), add(t, c, "pst1")
	before := number(t, c, a)
	number(t, c, b)
	w := c.WatchOFPorts()
	defer w.Close()
	vsctl(t, sw, "add-port", br, veth(t, "thief"), "--", "set", "interface", "thief", fmt.Sprintf("ofport_request=%d", before))
	until(t, w, "both numbers to move", func() bool {
		n, err := c.OFPort(soon(t), a)
		thief, terr := c.OFPort(soon(t), podnet.PortKey{Name: "thief"})
		return err == nil && terr == nil && thief == before && n != before
	})
}

// OF-12, fact 12: the name lives on, the row does not.
func TestSecondLifeOfANameIsAnotherPort(t *testing.T) {
	sw, c := setUp(t)
	name := veth(t, "gen1")
	first := add(t, c, name)
	n := number(t, c, first)
	w := c.WatchOFPorts()
	defer w.Close()
	vsctl(t, sw, "del-port", br, name, "--", "add-port", br, name)
	until(t, w, "the new row", func() bool { _, err := c.OFPort(soon(t), first); return errors.Is(err, podnet.ErrNoPort) })
	now, err := c.WaitOFPort(soon(t), podnet.PortKey{Name: name})
	t.Logf("number %d, after del-port and add-port in one transaction %d", n, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeletePort(soon(t), first); err != nil {
		t.Errorf("deleting the first life: %v", err)
	}
	if err := c.SetExternalIDs(soon(t), first, map[string]string{"a": "b"}); !errors.Is(err, podnet.ErrNoPort) {
		t.Errorf("external_ids of the first life: %v", err)
	}
	if _, err := c.OFPort(soon(t), podnet.PortKey{Name: name}); err != nil {
		t.Errorf("the second life did not survive the deletion of the first: %v", err)
	}
}

// DEAD-NETDEV and OVS-RESTART (facts 4, 6, 7).
func TestNumbersAcrossRestartOfVswitchd(t *testing.T) {
	sw, c := setUp(t)
	alive, dead := add(t, c, veth(t, "ok1")), add(t, c, veth(t, "dead1"))
	n := number(t, c, alive)
	number(t, c, dead)
	do(t, sw.KillVswitchd)
	unlink("dead1")
	late := add(t, c, "pok1")
	if _, err := c.OFPort(soon(t), late); !errors.Is(err, podnet.ErrNoNumber) {
		t.Errorf("a port added while ovs-vswitchd is down: %v", err)
	}
	w := c.WatchOFPorts()
	defer w.Close()
	do(t, sw.StartVswitchd)
	number(t, c, late)
	until(t, w, "the dead port's error", func() bool {
		_, err := c.OFPort(soon(t), dead)
		var pe *podnet.PortError
		return errors.As(err, &pe) && pe.OFPort == -1
	})
	// A port that was added while ovs-vswitchd was down may be given a number
	// that another one had before: the other one moves.
	again := number(t, c, alive)
	if out := vsctl(t, sw, "get", "interface", "ok1", "ofport"); out != itoa(again) {
		t.Errorf("number %d before the restart, Open vSwitch says %s now, the client %d", n, out, again)
	}
	if again == number(t, c, late) {
		t.Errorf("two ports with number %d", again)
	}
}

func TestReservedNumberIsAnError(t *testing.T) {
	_, c := setUp(t)
	_, err := c.WaitOFPort(soon(t), podnet.PortKey{Name: br})
	var pe *podnet.PortError
	if !errors.As(err, &pe) || pe.OFPort != 65534 {
		t.Errorf("the bridge's own port: %v", err)
	}
	if err := c.DeletePort(soon(t), podnet.PortKey{Name: br}); !errors.Is(err, podnet.ErrBadRequest) {
		t.Errorf("deleting the bridge's own port: %v", err)
	}
}

func TestWatchEnds(t *testing.T) {
	_, c := setUp(t)
	w := c.WatchOFPorts()
	errc := make(chan error, 1)
	go func() {
		for {
			if _, err := w.Next(soon(t)); err != nil {
				errc <- err
				return
			}
		}
	}()
	w.Close()
	w.Close()
	if err := <-errc; err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w2 := c.WatchOFPorts()
	defer w2.Close()
	if _, err := w2.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next of a dead context: %v", err)
	}
}

// RS-22: an internal port whose name a foreign netdev holds.
func TestInternalPortNamedLikeANetdev(t *testing.T) {
	_, c := setUp(t)
	veth(t, "taken0")
	key, err := c.EnsureInternalPort(soon(t), "taken0", mac(t, "0a:00:00:00:00:01"), map[string]string{"podnet-owner": "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.WaitOFPort(soon(t), key)
	var pe *podnet.PortError
	if !errors.As(err, &pe) || pe.Text == "" {
		t.Fatalf("WaitOFPort: %v", err)
	}
	t.Log(err)
	w := c.WatchOFPorts()
	defer w.Close()
	unlink("taken0")
	if err := c.Nudge(soon(t), key); err != nil {
		t.Fatal(err)
	}
	until(t, w, "a number after the stranger went", func() bool { _, err := c.OFPort(soon(t), key); return err == nil })
	if l, err := netlink.LinkByName("taken0"); err != nil || l.Attrs().HardwareAddr.String() != "0a:00:00:00:00:01" {
		t.Errorf("the gateway: %+v, %v", l, err)
	}
}
