package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// restartPods is how many Pods wait while something is restarted.
func restartPods() int { return min(50, options.pods) }

// ovs-vswitchd is killed while Pods wait for it, and comes back.
func TestSwitchRestartsWhilePodsWait(t *testing.T) {
	n := start(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	n.freeze()
	pods := n.beginAll("p", restartPods())
	n.areToldNotReady(pods)
	if err := n.Switch.KillVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.stillWaiting(pods...)
	began := time.Now()
	n.startSwitch()
	n.becomeReady(pods...)
	t.Logf("%d Pods are ready %s after the start of ovs-vswitchd", len(pods), time.Since(began).Round(time.Millisecond))
	n.reachRing(append([]*lab.Pod{peer}, pods...))
	for _, p := range pods {
		n.wantEvents(p, eventNotReady, eventReady)
	}
	n.numbersAgree()
	n.endAll(pods)
	n.onlyLeft(peer)
	n.gatewayHasItsNumberBack()
}

// The agent is killed while Pods wait, and the next one takes up every wait
// where it stood: from OVSDB, without a number to begin with.
func TestAgentRestartsWhilePodsWait(t *testing.T) {
	n := start(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	n.freeze()
	pods := n.beginAll("p", restartPods())
	if err := n.KillAgent(); err != nil {
		t.Fatal(err)
	}
	if err := n.LaunchAgent(); err != nil {
		t.Fatal(err)
	}
	n.settled("the next agent knows who waits", func() error { return n.inState("waiting", pods) })
	n.areToldNotReady(pods, "number")
	ended := pods[:len(pods)/5]
	pods = pods[len(ended):]
	n.delAll(ended) // no flow was ever sent: no switch is needed
	n.forget(ended...)
	n.thaw()
	n.becomeReady(pods...)
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.reachRing(append([]*lab.Pod{peer}, pods...))
	n.numbersAgree()
	for _, p := range pods {
		if err := n.Check(t.Context(), p); err != nil {
			t.Errorf("CHECK %s: %v", p.Name, err)
		}
	}
	n.endAll(pods)
	n.onlyLeft(peer)
}

// Everything is killed while Pods wait, also what would remember them.
func TestEverythingRestartsWhilePodsWait(t *testing.T) {
	n := start(t, asynchronous(nil))
	n.freeze()
	a, b := n.begin("a"), n.begin("b")
	for _, step := range []func() error{n.KillAgent, n.Switch.KillVswitchd, n.Switch.StopDB, n.Switch.StartDB, n.LaunchAgent, n.Switch.StartVswitchd} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	n.becomeReady(a, b)
	n.reach(a, b)
	n.regainsGateway(a)
	n.numbersAgree()
	n.endAll([]*lab.Pod{a, b})
	n.gatewayHasItsNumberBack()
}

// The OpenFlow connection is cut for ten seconds. Ports come up meanwhile and
// nobody is there to be told; the next session lists them.
func TestOpenFlowIsCutWhilePortsComeUp(t *testing.T) {
	n, relay := startBehindRelay(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	relay.Cut()
	began := time.Now()
	pods := n.beginAll("p", restartPods())
	for _, p := range pods {
		n.hasNumber(p)
	}
	n.areToldNotReady(pods, "OpenFlow")
	n.untilAge(began, 10*time.Second)
	n.stillWaiting(pods...)
	relay.Mend()
	mended := time.Now()
	n.becomeReady(pods...)
	t.Logf("%d Pods are ready %s after the connection was mended", len(pods), time.Since(mended).Round(time.Millisecond))
	n.reachRing(append([]*lab.Pod{peer}, pods...))
	for _, p := range pods {
		n.wantEvents(p, eventNotReady, eventReady)
	}
	n.endAll(pods)
	n.onlyLeft(peer)
}

// A message of the switch about a port is lost (OF-23): the port list that is
// read once in a period repairs it.
func TestLostPortStatusIsRepaired(t *testing.T) {
	n, relay := startBehindRelay(t, asynchronous(map[string]any{"syncPeriod": "1s"}))
	peer := n.begin("peer")
	n.becomeReady(peer)
	relay.Judge(func(frame []byte) lab.Verdict {
		if lab.IsPortStatus(frame) {
			return lab.Lose
		}
		return lab.Forward
	})
	p := n.begin("p")
	n.becomeReady(p)
	if relay.Count(lab.Lose) == 0 {
		t.Error("no PORT_STATUS was lost; the scenario tests nothing")
	}
	n.reach(peer, p)
}

// gatewayHasItsNumberBack gives the gateway the number it had before ovs-vswitchd
// was restarted, so that the flows can be compared with those before. A port
// that never had a number may be given, at the restart, one that OVSDB
// remembers for another port, the gateway's among them.
func (n *node) gatewayHasItsNumberBack() {
	n.t.Helper()
	if _, err := n.Switch.Vsctl("set", "interface", lab.GatewayName, "ofport_request=1"); err != nil {
		n.t.Fatal(err)
	}
	n.settled("the gateway has number 1", func() error {
		if _, err := n.Switch.Vsctl("--no-wait", "set", "interface", lab.GatewayName, "external_ids:look=again"); err != nil {
			return err
		}
		number, err := n.number(lab.GatewayName)
		if err == nil && number != 1 {
			err = fmt.Errorf("it has %d", number)
		}
		return err
	})
}

// numbersAgree demands that every ready interface has the number that OVSDB has
// for its port, and that no flow stands on a number that no port has.
func (n *node) numbersAgree() {
	n.t.Helper()
	n.settled("the agent's numbers are Open vSwitch's", func() error {
		records, err := n.records()
		if err != nil {
			return err
		}
		gateway, err := n.number(lab.GatewayName)
		if err != nil {
			return err
		}
		numbers := []int{gateway}
		for _, r := range records {
			number, err := n.number(r.Host)
			if err != nil || r.State == "ready" && number != r.OFPort {
				return fmt.Errorf("port %s has number %d, the agent says %d, %v", r.Host, number, r.OFPort, err)
			}
			numbers = append(numbers, number)
		}
		flows, err := n.Flows()
		for _, flow := range flows {
			if number, ok := inPort(flow); err == nil && ok && !slices.Contains(numbers, number) {
				err = fmt.Errorf("a flow on a number that no port has: %s", flow)
			}
		}
		return err
	})
}
