package windows_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// OF-4: an error that only a change of the row cures.
func TestErrorIsNudgedAway(t *testing.T) {
	var opened atomic.Int32 // how often it was tried
	setUp := func(n *winNode) {
		n.opens = func(p podnet.Port) error {
			if opened.Add(1) <= 2 {
				return errors.New("could not add network device " + p.Name + " to ofproto (Invalid argument)")
			}
			return nil
		}
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		after(4 * time.Second)
		if got := typeChanges(n, iface); len(got) != 1 {
			t.Errorf("nudged before the error stood for 5 s: %v", got)
		}
		readyWithin(t, network, iface, time.Minute)
		if got := typeChanges(n, iface); !slices.Equal(got, []string{`"internal"`, `""`, `"internal"`, `""`, `"internal"`}) {
			t.Errorf("types written: %v", got)
		}
		del(t, network, iface)
		nothingLeft(t, n)
	})
}

// OF-17: the text is told; nudges come ever more seldom, the nudged port rests.
func TestNudgesBackOff(t *testing.T) {
	type change struct {
		at  time.Duration
		typ string
	}
	var mu sync.Mutex
	var changes []change
	var cured atomic.Bool
	setUp := func(n *winNode) {
		n.opens = func(p podnet.Port) error {
			if cured.Load() {
				return nil
			}
			return errors.New("could not open network device (File exists)")
		}
		begun := time.Now()
		n.Bridge.After("SetType", func(context.Context) error {
			ports, _ := n.Bridge.Ports(context.Background())
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, change{time.Since(begun), ports[0].Type})
			return nil
		})
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		after(35 * time.Second)
		wantTold(t, n, iface, `NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: port PORT: ofport -1: could not open network device (File exists), although its host interface is there; its type was set to "" and back to "internal" 2 times`)
		after(time.Hour)
		mu.Lock()
		seen := slices.Clone(changes)
		mu.Unlock()
		var nudges []time.Duration
		for i, c := range seen {
			switch {
			case c.typ == "":
				nudges = append(nudges, c.at)
			case i > 0 && c.at-seen[i-1].at < time.Second:
				t.Errorf("change %d: its type was back after %v; Open vSwitch may not have seen that it was gone", i, c.at-seen[i-1].at)
			case i > 0 && c.at-seen[i-1].at > 3*time.Second:
				t.Errorf("change %d: the port was without type for %v", i, c.at-seen[i-1].at)
			}
		}
		if len(nudges) < 20 || len(nudges) > 65 {
			t.Errorf("%d nudges in an hour", len(nudges))
		}
		for i := 1; i < len(nudges); i++ {
			if gap := nudges[i] - nudges[i-1]; gap < min(5*time.Second<<i, time.Minute) {
				t.Errorf("nudge %d came %v after the one before", i, gap)
			}
		}
		cured.Store(true)
		readyWithin(t, network, iface, 3*time.Minute)
	})
}

// Each Pod has its own back-off, and nudges of many are not serial.
func TestManyPortsInError(t *testing.T) {
	var cured atomic.Bool
	setUp := func(n *winNode) {
		n.opens = func(podnet.Port) error {
			if cured.Load() {
				return nil
			}
			return errNotNow
		}
		n.Bridge.Before("SetType", func(ctx context.Context) error { // an OVSDB that takes its time
			select {
			case <-time.After(300 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		var ifaces []ifstore.Interface
		for p := range 200 {
			iface := add(t, network, "c"+string(rune('0'+p/100))+string(rune('0'+p/10%10))+string(rune('0'+p%10)))
			n.vnics.set(iface.Name, true)
			ifaces = append(ifaces, iface)
		}
		after(20 * time.Second)
		cured.Store(true)
		for _, iface := range ifaces {
			readyWithin(t, network, iface, time.Minute)
		}
		for _, iface := range ifaces {
			if got := typeChanges(n, iface); len(got) > 7 {
				t.Errorf("%s: types written: %v", iface.Name, got)
			}
		}
	})
}

// The vNIC goes while its port is in error: that is the cause then, and nothing is nudged.
func TestNoNudgeWithoutVNIC(t *testing.T) {
	setUp := func(n *winNode) { n.opens = func(podnet.Port) error { return errNotNow } }
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		after(3 * time.Second)
		n.vnics.set(iface.Name, false)
		after(28 * time.Second)
		wantTold(t, n, iface, "NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: host interface vEthernet (PORT) has not appeared yet")
		before := len(typeChanges(n, iface))
		after(time.Hour)
		if got := typeChanges(n, iface)[before:]; len(got) != 0 {
			t.Errorf("types written: %v", got)
		}
	})
}

// ErrNoNumber after a nudge that failed half-way: the type goes back all the same.
func TestNudgeThatFailsHalfWay(t *testing.T) {
	var calls, opened atomic.Int32
	setUp := func(n *winNode) {
		n.opens = func(podnet.Port) error {
			if opened.Add(1) == 1 {
				return errNotNow
			}
			return nil
		}
		n.Bridge.Before("SetType", func(context.Context) error {
			if c := calls.Add(1); c == 2 || c == 4 || c == 5 { // the first nudge; the way back of the second
				return podnet.ErrNotConnected
			}
			return nil
		})
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, iface, time.Minute)
		if got := typeChanges(n, iface); !slices.Equal(got, []string{`"internal"`, `""`, `""`, `"internal"`, `"internal"`, `"internal"`}) {
			t.Errorf("types written: %v", got)
		}
	})
}

// OF-17: a port that was ready and cannot be opened any more, after a restart of
// ovs-vswitchd for example, is nudged like one that never was.
func TestReadyPortInErrorIsNudged(t *testing.T) {
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, iface, time.Second)
		before := len(typeChanges(n, iface))
		n.Bridge.SetOFPort(iface.Name, -1, "File exists")
		after(2 * time.Second)
		if s, cause := state(network, iface); s != ifstore.StateWaiting || !strings.Contains(cause, "File exists") {
			t.Errorf("%v, %q", s, cause)
		}
		readyWithin(t, network, iface, 20*time.Second)
		if got := typeChanges(n, iface)[before:]; !slices.Equal(got, []string{`""`, `"internal"`}) {
			t.Errorf("types written: %v", got)
		}
		del(t, network, iface)
		nothingLeft(t, n)
	})
}

// A number that the port had under its old type goes with it; flows on it would
// be somebody else's a moment later.
func TestNumberFromBeforeTheSwitchIsNotTaken(t *testing.T) {
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.Bridge.SetOFPort(iface.Name, 7, "")
		n.Bridge.Slow(true) // it does not react to the switch at once
		n.vnics.set(iface.Name, true)
		after(700 * time.Millisecond)
		if s, _ := state(network, iface); s != ifstore.StateWaiting || len(typeChanges(n, iface)) != 1 {
			t.Errorf("%v, types written: %v", s, typeChanges(n, iface))
		}
		n.Bridge.SetOFPort(iface.Name, 8, "")
		readyWithin(t, network, iface, 100*time.Millisecond)
	})
}

// The same when the switch had not looked at the row yet: its first number may
// be the one of the earlier type, and the next thing that it finds an error.
func TestFirstNumberAfterTheSwitchMayBeFromBefore(t *testing.T) {
	setUp := func(n *winNode) { n.Bridge.Slow(true) }
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		after(600 * time.Millisecond)
		if got := typeChanges(n, iface); len(got) != 1 {
			t.Fatalf("types written: %v", got)
		}
		n.Bridge.SetOFPort(iface.Name, 7, "")
		after(100 * time.Millisecond)
		if s, _ := state(network, iface); s != ifstore.StateWaiting {
			t.Errorf("%v with a number that may be of type \"\"", s)
		}
		n.Bridge.SetOFPort(iface.Name, -1, "Invalid argument")
		after(2 * time.Second)
		n.Bridge.SetOFPort(iface.Name, 8, "")
		readyWithin(t, network, iface, time.Second)
		wantTold(t, n, iface, "NetworkReady: flows of interface c1/eth0 are installed on OpenFlow port 8")
	})
}

// A nudge that gives the port a number half-way, because the switch can open
// the device without its type too, is brought to its end all the same.
func TestNudgedPortGetsItsTypeBack(t *testing.T) {
	setUp := func(n *winNode) {
		opens := n.Bridge.Opens
		n.Bridge.Opens = func(p podnet.Port) error {
			if p.Type == "" && n.vnics.has(p.Name) {
				return nil
			}
			return opens(p)
		}
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, iface, 2*time.Second)
		before := len(typeChanges(n, iface))
		n.Bridge.SetOFPort(iface.Name, -1, "File exists")
		after(time.Minute)
		if s, cause := state(network, iface); s != ifstore.StateReady {
			t.Errorf("%v, %q", s, cause)
		}
		if got := typeChanges(n, iface)[before:]; !slices.Equal(got, []string{`""`, `"internal"`}) {
			t.Errorf("types written: %v", got)
		}
		del(t, network, iface)
		nothingLeft(t, n)
	})
}
