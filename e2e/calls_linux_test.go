package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestAgentAway(t *testing.T) {
	n := start(t, nil)
	p := n.plug("p", nil)
	if err := n.StopAgent(); err != nil {
		t.Fatal(err)
	}
	n.pingsGateway(p)
	away, err := n.NewPod("away", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Plugin.Run(t.Context(), away.Call("ADD"))
	n.wantError("ADD", err, codeTryAgain, "agent", n.Socket())
	n.wantError("CHECK", n.Check(t.Context(), p), codeTryAgain, "agent")
	_, err = n.Plugin.Run(t.Context(), p.Call("DEL"))
	n.wantError("DEL", err, codeTryAgain, "agent")
	_, err = n.Plugin.Run(t.Context(), lab.Call{Command: "STATUS", Stdin: n.NetConf(nil)})
	n.wantError("STATUS", err, codeUnavailable, "agent")
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.pods[away.Name] = away
	if err := n.Add(t.Context(), away); err != nil {
		t.Fatal(err)
	}
	n.pings(p, away)
}

func TestSecondAgentIsRefused(t *testing.T) {
	n := start(t, nil)
	p := n.plug("p", nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := n.SecondAgent(ctx)
	if err == nil || ctx.Err() != nil {
		t.Fatalf("a second agent ran: %v\n%s", err, out)
	}
	if pid := fmt.Sprint(n.AgentPID()); !strings.Contains(err.Error(), pid) {
		t.Errorf("the error does not name the pid %s of the first: %v", pid, err)
	}
	n.pingsGateway(p)
	n.plug("q", nil)
}

// The runtime loses the result: ADD counts as failed, no DEL need come.
func TestLostResultLeavesNothing(t *testing.T) {
	n := start(t, nil)
	p, err := n.NewPod("lost", nil)
	if err != nil {
		t.Fatal(err)
	}
	// Killed while Open vSwitch has not answered yet.
	if err := n.Switch.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := n.Plugin.Command(ctx, p.Call("ADD"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.settled("the port row appears", func() error {
		ports, err := n.Switch.Vsctl("--no-wait", "list-ports", lab.Bridge)
		if err == nil && len(strings.Fields(ports)) < 2 {
			err = fmt.Errorf("ports: %s", ports)
		}
		return err
	})
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("the plugin ended well, want killed")
	}
	if err := n.Switch.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := nettest.DeleteNS(p.NetNS); err != nil {
		t.Fatal(err)
	}
	n.nothingLeft()
}

func TestHostInterfaceNameTakenByAStranger(t *testing.T) {
	n := start(t, nil)
	p := n.plug("p", nil)
	name := p.HostInterface()
	if err := n.Del(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	removeLink := n.addStranger(name)
	_, err := n.Plugin.Run(t.Context(), p.Call("ADD"))
	n.wantError("ADD", err, codeInterface, name)
	// DEL must not take what is not ours.
	if err := n.Del(t.Context(), p); err != nil {
		t.Error(err)
	}
	removeLink()
	if err := n.Add(t.Context(), p); err != nil {
		t.Errorf("ADD once the name is free: %v", err)
	}
}

func TestContainerInterfaceNameTaken(t *testing.T) {
	n := start(t, nil)
	p := n.plug("p", nil)
	other := *p
	other.ContainerID = strings.Repeat("b", 64)
	_, err := n.Plugin.Run(t.Context(), other.Call("ADD"))
	n.wantError("ADD into a namespace that has an eth0", err, codeConfig, "eth0", p.NetNS)
	n.pingsGateway(p)
}

func TestRangeUsedUpAndGivenBack(t *testing.T) {
	n := start(t, map[string]any{"podCIDRs": []string{"10.20.0.0/29"}})
	var pods []*lab.Pod
	for i := range 8 {
		p, err := n.Plug(t.Context(), fmt.Sprintf("p%d", i), nil)
		if err != nil {
			n.wantError("ADD with the range used up", err, codeAddress, "10.20.0.0/29")
			break
		}
		n.pods[p.Name] = p
		pods = append(pods, p)
	}
	if len(pods) != 5 {
		t.Fatalf("%d Pods fit into a /29, want 5 (network, gateway and broadcast are not for Pods)", len(pods))
	}
	n.unplug(pods[0])
	n.pings(n.plug("again", nil), pods[1])
	for _, p := range pods[1:] {
		n.unplug(p)
	}
	n.unplug(n.pods["again"])
	// Every round an address comes back to another Pod; nothing of the last one may answer for it.
	for round := range options.pods / 10 {
		a, b := n.plug("a", nil), n.plug("b", nil)
		n.pings(a, b)
		n.unplug(a)
		n.unplug(b)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	n.nothingLeft()
}
