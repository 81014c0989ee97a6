package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/e2e/lab"
)

var inPortMatch = regexp.MustCompile(`\bin_port=([^, ]+)`)

// inPort is the number that a flow matches; false when it matches none. What is
// no number that a port can have is -1.
func inPort(flow string) (int, bool) {
	match, _, _ := strings.Cut(flow, "actions=")
	m := inPortMatch.FindStringSubmatch(match)
	if m == nil {
		return 0, false
	}
	number, err := strconv.Atoi(m[1])
	if err != nil || number < 1 || number > 0xfeff {
		return -1, true
	}
	return number, true
}

// A port that is waited for asks for the number of another Pod (fact 8). Open
// vSwitch gives it one, takes that back, gives it the wanted one, and the other
// Pod gets a new one: the first number that is seen is not the last.
func TestWaitingPortTakesTheNumberOfAnother(t *testing.T) {
	n := start(t, asynchronous(nil))
	a, b := n.begin("a"), n.begin("b")
	n.becomeReady(a, b)
	n.freeze()
	c := n.begin("c")
	wanted, err := n.number(a.HostInterface())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Switch.Vsctl("--no-wait", "set", "interface", c.HostInterface(), fmt.Sprintf("ofport_request=%d", wanted)); err != nil {
		t.Fatal(err)
	}
	n.thaw()
	n.settled("c has the number that was a's", func() error {
		// Open vSwitch swaps the two when it next looks at its database.
		if _, err := n.Switch.Vsctl("--no-wait", "set", "interface", c.HostInterface(), "external_ids:look=again"); err != nil {
			return err
		}
		number, err := n.number(c.HostInterface())
		if err == nil && number != wanted {
			err = fmt.Errorf("it is %d, not %d", number, wanted)
		}
		return err
	})
	n.becomeReady(a, b, c)
	n.numbersAgree()
	n.reach(a, b, c)
	n.regainsGateway(a)
	n.regainsGateway(c)
	for _, p := range []*lab.Pod{a, b} {
		if got := n.eventsOf(p); len(got) > 1 && got[len(got)-1] != eventReady {
			t.Errorf("%s: events %v", p.Name, got)
		}
	}
}

// Ports that are ready swap their numbers.
func TestPortsSwapTheirNumbers(t *testing.T) {
	n := start(t, asynchronous(nil))
	a, b := n.begin("a"), n.begin("b")
	n.becomeReady(a, b)
	numberOfA, err := n.number(a.HostInterface())
	if err != nil {
		t.Fatal(err)
	}
	numberOfB, err := n.number(b.HostInterface())
	if err != nil {
		t.Fatal(err)
	}
	set := func(p *lab.Pod, number int) []string {
		return []string{"--", "set", "interface", p.HostInterface(), fmt.Sprintf("ofport_request=%d", number)}
	}
	if _, err := n.Switch.Vsctl(append(set(a, numberOfB), set(b, numberOfA)...)...); err != nil {
		t.Fatal(err)
	}
	n.settled("the numbers change", func() error {
		if _, err := n.Switch.Vsctl("--no-wait", "set", "interface", a.HostInterface(), "external_ids:look=again"); err != nil {
			return err
		}
		number, err := n.number(b.HostInterface())
		if err == nil && number != numberOfA {
			err = fmt.Errorf("b has number %d, not %d", number, numberOfA)
		}
		return err
	})
	n.becomeReady(a, b)
	n.numbersAgree()
	n.reach(a, b)
}

// Somebody deletes a Pod's port and adds it again, with its marks, in two
// transactions (OF-12): another row, another number.
func TestPortIsReplaced(t *testing.T) {
	n := start(t, asynchronous(map[string]any{"syncPeriod": "1s"}))
	a, b := n.begin("a"), n.begin("b")
	n.becomeReady(a, b)
	n.replacePort(a)
	n.numbersAgree()
	n.reach(a, b)
	// The same while the Pod waits.
	n.freeze()
	c := n.begin("c")
	n.replacePort(c)
	n.thaw()
	n.becomeReady(c)
	n.numbersAgree()
	n.reach(a, c)
}

// replacePort deletes the Pod's port and adds it again with the same marks.
func (n *node) replacePort(p *lab.Pod) {
	n.t.Helper()
	port := p.HostInterface()
	marks, err := n.Switch.Vsctl("get", "port", port, "external_ids")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--no-wait", "del-port", lab.Bridge, port},
		{"--no-wait", "add-port", lab.Bridge, port, "--", "set", "port", port, "external_ids=" + strings.ReplaceAll(marks, ", ", ",")},
	} {
		if _, err := n.Switch.Vsctl(args...); err != nil {
			n.t.Fatal(err)
		}
	}
}

// The gateway's port is deleted and added again (OF-12): the agent gives it
// back what it needs and moves its flows to the new number.
func TestGatewayPortIsReplaced(t *testing.T) {
	n := start(t, asynchronous(map[string]any{"syncPeriod": "1s"}))
	a, b := n.begin("a"), n.begin("b")
	n.becomeReady(a, b)
	if _, err := n.Switch.Vsctl("del-port", lab.Bridge, lab.GatewayName); err != nil {
		t.Fatal(err)
	}
	n.regainsGateway(a)
	n.regainsGateway(b)
	n.reach(a, b)
	n.numbersAgree()
	// The new gateway has another MAC address, so the flows are not those of before.
	n.baseline = nil
	n.endAll([]*lab.Pod{a, b})
	n.onlyLeft()
}

// A number is free once its port is gone, and after a restart of Open vSwitch
// the next port gets it (fact 7, OF-11). A DEL that comes late, or twice, must not
// take the flows of the port that has the number now.
func TestLateDelSparesTheNextOwnerOfTheNumber(t *testing.T) {
	n := start(t, asynchronous(nil))
	keep := n.begin("keep")
	old := n.begin("old")
	n.becomeReady(keep, old)
	number, err := n.number(old.HostInterface())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Del(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	n.stopSwitch()
	n.startSwitch()
	next := n.begin("next")
	n.becomeReady(next)
	now, err := n.number(next.HostInterface())
	if err != nil || now != number {
		t.Fatalf("the next port has number %d (%v), not %d: the scenario tests nothing", now, err, number)
	}
	for range 2 {
		if err := n.Del(t.Context(), old); err != nil {
			t.Error(err)
		}
	}
	n.forget(old)
	n.numbersAgree()
	n.reach(keep, next)
	n.regainsGateway(next)
}
