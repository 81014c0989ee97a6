package ofclient_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
)

// next returns what the watch tells now, sorted; nothing when it is quiet.
func next(t *testing.T, w *ofclient.PortWatch) []string {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	names, err := w.Next(ctx)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names
}

func wantNames(t *testing.T, w *ofclient.PortWatch, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, next(t, w)); diff != "" {
		t.Errorf("%s: names told (-want +got):\n%s", when, diff)
	}
}

// wantPorts checks the latest state: a map of names to numbers, 0 for none.
func wantPorts(t *testing.T, c *ofclient.Client, when string, want map[string]uint32) {
	t.Helper()
	for name, number := range want {
		d, ok := c.Port(name)
		if ok != (number != 0) || d.Number != number {
			t.Errorf("%s: port %s: %v, number %d, want %d", when, name, ok, d.Number, number)
		}
	}
}

func TestPortWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.PortsPerPart = 2 })
		for n, name := range []string{"a", "b", "c", "d", "e"} {
			sw.AddPort(port(uint32(n+1), name))
		}
		coalesced, repaired := 0, 0
		c := run(t, ofclient.Config{Dial: sw.Dial, ListPeriod: 10 * time.Second, Observer: ofclient.Observer{
			Coalesced: func(n int) { coalesced += n }, Repaired: func(n int) { repaired += n }}})
		early := c.WatchPorts() // before there is a session
		wantNames(t, early, "first session", "a", "b", "c", "d", "e")
		w := c.WatchPorts()
		wantNames(t, w, "new watch", "a", "b", "c", "d", "e")
		wantPorts(t, c, "first session", map[string]uint32{"a": 1, "e": 5, "f": 0})

		sw.AddPort(port(6, "f"))
		sw.ModifyPort(ofp.PortDesc{Number: 2, Name: "b", State: ofp.PortStateLinkDown})
		sw.DeletePort(3)
		wantNames(t, w, "events", "b", "c", "f")
		wantPorts(t, c, "events", map[string]uint32{"b": 2, "c": 0, "f": 6})
		if d, _ := c.Port("b"); d.State != ofp.PortStateLinkDown {
			t.Errorf("state of b: %v", d.State)
		}

		for range 10 {
			sw.ModifyPort(port(1, "a"))
		}
		wantNames(t, w, "many events of one port", "a")
		if coalesced < 9 {
			t.Errorf("%d events coalesced", coalesced)
		}
		time.Sleep(11 * time.Second)
		wantNames(t, w, "a list without news")

		// Lost events: the list repairs them within a period.
		sw.SetFaults(func(f *oftest.Faults) { f.DropPortStatus = 3 })
		sw.AddPort(port(7, "g"))
		sw.DeletePort(1)
		sw.ModifyPort(port(2, "b"))
		wantNames(t, w, "lost events")
		time.Sleep(10 * time.Second)
		wantNames(t, w, "repaired by the list", "a", "b", "g")
		if repaired != 3 {
			t.Errorf("%d ports repaired by lists", repaired)
		}
		wantPorts(t, c, "repaired by the list", map[string]uint32{"a": 0, "b": 2, "g": 7})

		// Everything may have happened while nobody was connected.
		sw.SetFaults(func(f *oftest.Faults) { f.RefuseDial = context.DeadlineExceeded })
		sw.DropSessions()
		synctest.Wait()
		wantPorts(t, c, "no session", map[string]uint32{"b": 0})
		sw.DeletePort(2)
		sw.AddPort(port(8, "h"))
		sw.SetFaults(func(f *oftest.Faults) { f.RefuseDial = nil })
		time.Sleep(5 * time.Second)
		wantNames(t, w, "new session", "b", "d", "e", "f", "g", "h")
		wantPorts(t, c, "new session", map[string]uint32{"b": 0, "h": 8})
		sw.DropSessions()
		time.Sleep(5 * time.Second)
		wantNames(t, w, "third session: what vanished was told", "d", "e", "f", "g", "h")

		early.Close()
		early.Close()
		if _, err := early.Next(t.Context()); err == nil {
			t.Error("a closed watch told something")
		}
		w.Close()
	})
}

// The number of a name can change hands in any order of events (fact 8).
func TestStolenNumbers(t *testing.T) {
	type event struct {
		reason ofp.PortReason
		number uint32
		name   string
	}
	add, del := ofp.PortAdded, ofp.PortDeleted
	for name, test := range map[string]struct {
		events []event
		want   map[string]uint32
	}{
		"as OVS was seen to do": {[]event{{add, 4, "c1"}, {del, 3, "a3"}, {del, 4, "c1"}, {add, 3, "c1"}, {add, 5, "a3"}}, map[string]uint32{"c1": 3, "a3": 5}},
		"new before old":        {[]event{{add, 4, "a3"}, {del, 3, "a3"}}, map[string]uint32{"a3": 4}},
		"old before new":        {[]event{{del, 3, "a3"}, {add, 4, "a3"}}, map[string]uint32{"a3": 4}},
		"number taken first":    {[]event{{add, 3, "c1"}, {del, 3, "a3"}, {add, 4, "a3"}}, map[string]uint32{"c1": 3, "a3": 4}},
		"delete lost":           {[]event{{add, 3, "c1"}}, map[string]uint32{"c1": 3, "a3": 0}},
		"new withdrawn":         {[]event{{add, 4, "a3"}, {del, 4, "a3"}}, map[string]uint32{"a3": 3}},
		"gone altogether":       {[]event{{add, 4, "a3"}, {del, 3, "a3"}, {del, 4, "a3"}}, map[string]uint32{"a3": 0}},
		"unknown deleted":       {[]event{{del, 9, "a3"}, {del, 3, "c1"}}, map[string]uint32{"a3": 3, "c1": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newSwitch(t)
				sw.AddPort(port(3, "a3"))
				c := run(t, ofclient.Config{Dial: sw.Dial, ListPeriod: -1})
				synctest.Wait()
				for _, e := range test.events {
					sw.PortStatus(e.reason, port(e.number, e.name))
				}
				synctest.Wait()
				wantPorts(t, c, "after the events", test.want)
			})
		})
	}
}

// Events that arrive between the parts of a list are newer than the list.
func TestEventsDuringAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		for n := range uint32(6) {
			sw.AddPort(port(n+1, fmt.Sprintf("p%d", n+1)))
		}
		c := run(t, ofclient.Config{Dial: sw.Dial, ListPeriod: -1})
		w := c.WatchPorts()
		next(t, w)
		first := true
		sw.SetFaults(func(f *oftest.Faults) {
			f.PortsPerPart = 2
			f.BetweenParts = func() {
				if first {
					first = false
					sw.DeletePort(1)          // in the part that was sent
					sw.DeletePort(6)          // in the part to come
					sw.AddPort(port(7, "p7")) // in none
					sw.DeletePort(5)
					sw.AddPort(port(8, "p5")) // moved, the old number is still to come
				}
			}
		})
		ports, err := c.Ports(t.Context())
		if err != nil || len(ports) != 6 {
			t.Errorf("%d ports in the snapshot, %v", len(ports), err)
		}
		wantPorts(t, c, "after the list", map[string]uint32{"p1": 0, "p2": 2, "p3": 3, "p4": 4, "p5": 8, "p6": 0, "p7": 7})
		wantNames(t, w, "after the list", "p1", "p5", "p6", "p7")
	})
}

// RC-10: nobody reads the watch, a flood of events passes, and a bundle is not delayed.
func TestFloodOfPortEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		coalesced := 0
		c := run(t, ofclient.Config{Dial: sw.Dial, Observer: ofclient.Observer{Coalesced: func(n int) { coalesced += n }}})
		w := c.WatchPorts()
		defer w.Close()
		synctest.Wait()
		const ports, rounds = 200, 25
		for range rounds {
			for n := range uint32(ports) {
				sw.AddPort(port(n+1, fmt.Sprintf("p%03d", n)))
			}
		}
		start := time.Now()
		if err := apply(t, c, pod(1, 3)); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the bundle took %v", d)
		}
		if names := next(t, w); len(names) != ports || coalesced != ports*(rounds-1) {
			t.Errorf("%d names, %d events coalesced", len(names), coalesced)
		}
	})
}
