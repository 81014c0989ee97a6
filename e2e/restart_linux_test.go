package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// stream pings in the background until the returned function is called.
func (n *node) stream(from, to *lab.Pod) (report func() lab.PingReport) {
	n.t.Helper()
	// Packets that wait for a neighbour's address would hide an outage.
	n.pings(from, to)
	ctx, cancel := context.WithCancel(n.t.Context())
	type outcome struct {
		lab.PingReport
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := lab.PingStream(ctx, from.NetNS, from.Addr(false), to.Addr(false), 20*time.Millisecond)
		done <- outcome{r, err}
	}()
	return func() lab.PingReport {
		n.t.Helper()
		cancel()
		o := <-done
		if o.err != nil {
			n.t.Errorf("ping stream: %v", o.err)
		}
		return o.PingReport
	}
}

// sameFlows waits until the switch has exactly these flows.
func (n *node) sameFlows(want []string) {
	n.t.Helper()
	n.settled("the flows are the same as before", func() error {
		flows, err := n.Flows()
		return orDiff(err, lab.Listing{"flow": flows}, lab.Listing{"flow": want})
	})
}

func (n *node) flows() []string {
	n.t.Helper()
	flows, err := n.Flows()
	if err != nil {
		n.t.Fatal(err)
	}
	return flows
}

func TestRestartOfTheAgentIsNotFelt(t *testing.T) {
	n := start(t, nil)
	a, b, vlan := n.plug("a", nil), n.plug("b", nil), n.plug("vlan", map[string]any{"vlan": 10})
	want := n.flows()
	report := n.stream(a, b)
	for _, stop := range []func() error{n.KillAgent, n.StopAgent} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		n.pings(a, b)
		if err := n.StartAgent(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.sameFlows(want)
		for _, p := range []*lab.Pod{a, b, vlan} {
			if err := n.Check(t.Context(), p); err != nil {
				t.Errorf("CHECK %s after a restart: %v", p.Name, err)
			}
		}
		fresh := n.plug("fresh", nil)
		n.pings(a, b, fresh)
		n.unplug(fresh)
	}
	if r := report(); r.Lost != 0 {
		t.Errorf("%d of %d pings lost while the agent was restarted, longest gap %s", r.Lost, r.Sent, r.LongestGap)
	}
	n.unplug(b)
	n.silent(a.At(false), b.Addr(false))
}

// What happened while the agent was away is made good after it is back.
func TestPodsThatWentWhileTheAgentWasAway(t *testing.T) {
	n := start(t, map[string]any{"syncPeriod": "1s"})
	stays, goes := n.plug("stays", nil), n.plug("goes", nil)
	if err := n.KillAgent(); err != nil {
		t.Fatal(err)
	}
	delete(n.pods, goes.Name)
	if err := nettest.DeleteNS(goes.NetNS); err != nil {
		t.Fatal(err)
	}
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	// No DEL ever comes; the sweep needs two looks.
	n.settled("what is left of the dead Pod goes", func() error {
		ports, err := n.Switch.Vsctl("list-ports", lab.Bridge)
		if err == nil && strings.Contains(ports, goes.HostInterface()) {
			err = fmt.Errorf("port %s stands", goes.HostInterface())
		}
		if err == nil {
			var leases []string
			if leases, err = n.Leases(); err == nil && len(leases) != 2 {
				err = fmt.Errorf("leases %v", leases)
			}
		}
		return err
	})
	n.pingsGateway(stays)
}

func TestRestartOfOpenVSwitch(t *testing.T) {
	n := start(t, nil)
	// A multiple of the three VLANs, so that each Pod's partner is in its own.
	pods := make([]*lab.Pod, min(51, options.pods/3*3))
	for i := range pods {
		pods[i] = n.plug(fmt.Sprintf("p%d", i), map[string]any{"vlan": i % 3 * 10})
	}
	want := n.flows()
	a, b := pods[0], pods[3]
	for _, stop := range []func() error{n.Switch.StopVswitchd, n.Switch.KillVswitchd} {
		report := n.stream(a, b)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := n.Switch.StartVswitchd(); err != nil {
			t.Fatal(err)
		}
		n.sameFlows(want)
		if err := n.WaitReady(t.Context()); err != nil {
			t.Error(err)
		}
		r := report()
		t.Logf("%d of %d pings lost, longest gap %s", r.Lost, r.Sent, r.LongestGap.Round(time.Millisecond))
		for i, p := range pods {
			n.pings(p, pods[(i+3)%len(pods)])
			if i%3 == 0 {
				n.regainsGateway(p)
			}
		}
		fresh := n.plug("fresh", nil)
		n.pings(a, fresh)
		n.pingsGateway(fresh)
		n.unplug(fresh)
	}
}

func TestRestartOfTheDatabase(t *testing.T) {
	n := start(t, nil)
	a, b := n.plug("a", nil), n.plug("b", nil)
	want := n.flows()
	report := n.stream(a, b)
	if err := n.Switch.StopDB(); err != nil {
		t.Fatal(err)
	}
	if options.datapath == "system" {
		n.pings(a, b)
	}
	if err := n.Switch.StartDB(); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := n.plug("fresh", nil) // waits until ovs-vswitchd has its database again
	n.pings(a, b, fresh)
	n.unplug(fresh)
	n.sameFlows(want)
	// Without its database, ovs-vswitchd does not poll the userspace datapath
	// (bridge_run returns early); the kernel forwards by itself.
	if r := report(); r.Lost != 0 && options.datapath == "system" {
		t.Errorf("%d of %d pings lost while the database was restarted", r.Lost, r.Sent)
	}
}

func TestEverythingRestarts(t *testing.T) {
	n := start(t, nil)
	a, b := n.plug("a", nil), n.plug("b", map[string]any{"vlan": 0})
	want := n.flows()
	for _, step := range []func() error{n.KillAgent, n.Switch.KillVswitchd, n.Switch.StopDB, n.Switch.StartDB, n.LaunchAgent, n.Switch.StartVswitchd} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.sameFlows(want)
	n.pings(a, b)
	n.pingsGateway(a)
	n.plug("fresh", nil)
}
