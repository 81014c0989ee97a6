package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// A wait ends with DEL, at whatever stage it is and whatever is away, and
// leaves nothing: the end of every case compares the node with the one before.
func TestDelEndsTheWait(t *testing.T) {
	n := start(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	for i, stage := range []struct {
		name string
		// reach brings the Pod to the stage; mend ends the disturbance after DEL.
		reach func(*lab.Pod)
		mend  func()
	}{
		{"the number is awaited", func(p *lab.Pod) { n.stillWaiting(p) }, n.thaw},
		{"the Pod was told", func(p *lab.Pod) { n.areToldNotReady([]*lab.Pod{p}) }, n.thaw},
		{"ovs-vswitchd has ended", func(p *lab.Pod) { n.stopSwitch(); n.stillWaiting(p) }, n.startSwitch},
		{"ready", func(p *lab.Pod) { n.thaw(); n.becomeReady(p) }, func() {}},
	} {
		n.freeze()
		p := n.begin(fmt.Sprintf("p%d", i))
		stage.reach(p)
		began := time.Now()
		// Twice: runtimes repeat a DEL whose answer they did not get.
		for range 2 {
			if err := n.Del(t.Context(), p); err != nil {
				t.Errorf("%s: %v", stage.name, err)
			}
		}
		t.Logf("%s: two DELs took %s", stage.name, time.Since(began).Round(time.Millisecond))
		told := n.eventsOf(p)
		stage.mend()
		n.forget(p)
		n.onlyLeft(peer)
		n.wantEvents(p, told...) // nobody hears of a Pod that is gone
		n.regainsGateway(peer)
	}
}

// While the switch's word about the flows is out, nobody knows whether they
// stand: DEL waits for it, or they would outlive the Pod.
func TestDelWhileTheFlowsAreBeingSent(t *testing.T) {
	n, relay := startBehindRelay(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	relay.Judge(func(frame []byte) lab.Verdict {
		if lab.IsCommitReply(frame) {
			return lab.Hold
		}
		return lab.Forward
	})
	p := n.begin("p")
	n.settled("the flows are sent", func() error {
		if relay.Count(lab.Hold) == 0 {
			return errors.New("the switch has not answered yet")
		}
		return nil
	})
	n.stillWaiting(p)
	done := make(chan error, 1)
	go func() { done <- n.Del(t.Context(), p) }()
	n.settled("the DEL is under way", func() error {
		records, err := n.records()
		if r, known := records[p.ContainerID]; err == nil && known && r.State == "waiting" {
			err = fmt.Errorf("%s still waits", p.Name)
		}
		return err
	})
	relay.Judge(nil)
	relay.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	n.forget(p)
	n.onlyLeft(peer)
}

// With OpenFlow away and the number known no flow was sent, so DEL needs no switch.
func TestDelWhileOpenFlowIsAway(t *testing.T) {
	n, relay := startBehindRelay(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	relay.Cut()
	p := n.begin("p")
	n.hasNumber(p)
	n.areToldNotReady([]*lab.Pod{p})
	if err := n.Del(t.Context(), p); err != nil {
		t.Error(err)
	}
	n.forget(p)
	relay.Mend()
	n.onlyLeft(peer)
	n.becomeReady(n.begin("next"))
}

// Without its database nothing can be taken out. DEL says to try again, and the
// repeated one ends it.
func TestDelWhileTheDatabaseIsAway(t *testing.T) {
	n := start(t, asynchronous(nil))
	n.freeze()
	p := n.begin("p")
	if err := n.Switch.StopDB(); err != nil {
		t.Fatal(err)
	}
	impatient := p.Call("DEL")
	impatient.Stdin = n.NetConf(map[string]any{"timeoutSeconds": 2})
	_, err := n.Plugin.Run(t.Context(), impatient)
	n.wantError("DEL without a database", err, codeTryAgain)
	if err := n.Switch.StartDB(); err != nil {
		t.Fatal(err)
	}
	// As runtimes do: the DEL before may still wait for the database.
	n.settled("DEL", func() error { return n.Del(t.Context(), p) })
	n.thaw()
	n.forget(p)
	n.onlyLeft()
}

// Kubelet asks again for what it has; the answer is the same and nothing is
// made twice, before and after the wait.
func TestAddIsRepeatedWhileThePodWaits(t *testing.T) {
	n := start(t, asynchronous(nil))
	n.freeze()
	p := n.begin("p")
	first := p.Result
	again := func(when string) {
		t.Helper()
		if err := n.Add(t.Context(), p); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if !reflect.DeepEqual(p.Result, first) {
			t.Errorf("%s: the result is\n%+v, was\n%+v", when, p.Result, first)
		}
	}
	again("at once")
	n.areToldNotReady([]*lab.Pod{p})
	again("after the Pod was told")
	n.onlyLeft(p)
	n.thaw()
	n.becomeReady(p)
	again("ready")
	n.wantEvents(p, eventNotReady, eventReady)
	n.onlyLeft(p)
	n.regainsGateway(p)
}

// Kubelet replaces the sandbox of a Pod that waits. The two are apart.
func TestTwoSandboxesOfOnePodWait(t *testing.T) {
	n := start(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	n.freeze()
	old := n.begin("sandbox1")
	gone, fresh := n.beginSandbox("sandbox2", old), n.beginSandbox("sandbox3", old)
	n.stillWaiting(old, gone, fresh)
	n.areToldNotReady([]*lab.Pod{old, gone, fresh})
	n.unplug(gone)
	n.stillWaiting(old, fresh)
	n.thaw()
	n.becomeReady(old, fresh)
	n.reach(peer, old, fresh)
	n.unplug(old)
	n.reach(peer, fresh)
	if err := n.Check(t.Context(), fresh); err != nil {
		t.Errorf("CHECK of the newer sandbox: %v", err)
	}
}

// beginSandbox runs ADD for one more sandbox of the Pod that another one is of.
func (n *node) beginSandbox(name string, other *lab.Pod) *lab.Pod {
	n.t.Helper()
	p, err := n.NewPod(name, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	p.Args, n.pods[name] = other.Args, p
	if err := n.Add(n.t.Context(), p); err != nil {
		n.t.Fatal(err)
	}
	return p
}

// startBehindRelay starts an agent whose OpenFlow connection is in the test's hands.
func startBehindRelay(t *testing.T, extra map[string]any) (*node, *lab.Relay) {
	t.Helper()
	n := prepare(t, extra)
	relay, err := lab.StartRelay(filepath.Join(n.Dir, "openflow.sock"), n.Switch.MgmtSock(lab.Bridge))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The agent needs its switch until the last Pod is gone.
		n.unplugAll()
		if err := errors.Join(n.StopAgent(), relay.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := n.Configure(map[string]any{"openflow": relay.Endpoint()}); err != nil {
		t.Fatal(err)
	}
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.setBaseline()
	return n, relay
}

// hasNumber waits until Open vSwitch has given a number to the Pod's port.
func (n *node) hasNumber(p *lab.Pod) {
	n.t.Helper()
	n.settled(p.Name+" has a number", func() error {
		number, err := n.number(p.HostInterface())
		if err == nil && number <= 0 {
			err = fmt.Errorf("ofport %d", number)
		}
		return err
	})
}

// number is the ofport that OVSDB has for a port; 0 while it is not set.
func (n *node) number(port string) (int, error) {
	out, err := n.Switch.Vsctl("--no-wait", "--bare", "get", "interface", port, "ofport")
	if err != nil || out == "" || out == "[]" {
		return 0, err
	}
	return strconv.Atoi(out)
}

// stopSwitch ends ovs-vswitchd.
func (n *node) stopSwitch() {
	n.t.Helper()
	if err := n.Switch.StopVswitchd(); err != nil {
		n.t.Fatal(err)
	}
}

// startSwitch starts ovs-vswitchd, which was ended.
func (n *node) startSwitch() {
	n.t.Helper()
	if err := n.Switch.StartVswitchd(); err != nil {
		n.t.Fatal(err)
	}
	if err := n.WaitReady(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// onlyLeft demands that these Pods' ports, flows and leases are all there is.
func (n *node) onlyLeft(pods ...*lab.Pod) {
	n.t.Helper()
	n.settled("only "+describe(pods)+" is left", func() error {
		records, err := n.records()
		if err != nil {
			return err
		}
		if len(records) != len(pods) {
			return fmt.Errorf("the agent knows %d interfaces: %v", len(records), records)
		}
		out, err := n.Switch.Vsctl("list-ports", lab.Bridge)
		if err != nil {
			return err
		}
		want := []string{lab.GatewayName}
		for _, p := range pods {
			want = append(want, p.HostInterface())
		}
		slices.Sort(want)
		if ports := strings.Fields(out); !slices.Equal(ports, want) {
			return fmt.Errorf("ports %v, want %v", ports, want)
		}
		leases, err := n.Leases()
		if err == nil && len(leases) != 2*len(pods) {
			err = fmt.Errorf("leases %v", leases)
		}
		return err
	})
}
