package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// The founding failure: Open vSwitch gives the number late. ADD waits for it.
func TestAddWhileOpenVSwitchIsSlow(t *testing.T) {
	n := start(t, nil)
	a := n.plug("a", nil)
	slow, err := n.NewPod("slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	n.pods[slow.Name] = slow
	if err := n.Switch.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	added := make(chan error, 1)
	began := time.Now()
	go func() { added <- n.Add(t.Context(), slow) }()
	select {
	case err := <-added:
		t.Errorf("ADD ended with Open vSwitch frozen: %v", err)
		added <- err
	case <-time.After(3 * time.Second):
	}
	if err := n.Switch.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := <-added; err != nil {
		t.Fatalf("ADD after %s: %v", time.Since(began), err)
	}
	n.pings(a, slow)

	// Longer than the caller waits: a clear error, and nothing is left once Open vSwitch moves again.
	late, err := n.NewPod("late", map[string]any{"timeoutSeconds": 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Switch.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	err = n.Add(t.Context(), late)
	n.wantError("ADD with Open vSwitch frozen", err, codeTryAgain)
	if err := n.Switch.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := nettest.DeleteNS(late.NetNS); err != nil {
		t.Fatal(err)
	}
}

// A frozen switch delays a DEL; it is not lost.
func TestDelWhileOpenVSwitchIsFrozen(t *testing.T) {
	n := start(t, nil)
	a := n.plug("a", nil)
	p := n.plug("p", nil)
	if err := n.Switch.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	impatient := p.Call("DEL")
	impatient.Stdin = n.NetConf(map[string]any{"timeoutSeconds": 2})
	_, err := n.Plugin.Run(t.Context(), impatient)
	n.wantError("DEL", err, codeTryAgain)
	if err := n.Switch.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.unplug(p)
	n.pingsGateway(a)
}

// The host's end vanishes behind the agent's back.
func TestDeadNetdev(t *testing.T) {
	n := start(t, nil)
	a, dead := n.plug("a", nil), n.plug("dead", nil)
	n.deleteLink(dead.HostInterface())
	n.settled("CHECK tells", func() error {
		if err := n.Check(t.Context(), dead); err == nil {
			return fmt.Errorf("CHECK is content")
		}
		return nil
	})
	n.wantError("CHECK", n.Check(t.Context(), dead), codeCheck, dead.HostInterface())
	// The state outlives restarts without flows for a number that is none.
	if err := n.KillAgent(); err != nil {
		t.Fatal(err)
	}
	if err := n.Switch.StopVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := n.Switch.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, flow := range n.flows() {
		for _, bad := range []string{"in_port=ANY", "in_port=0,", "in_port=-1", "in_port=65535"} {
			if strings.Contains(flow+",", bad) {
				t.Errorf("flow for a number that is none: %s", flow)
			}
		}
	}
	n.regainsGateway(a)
	n.unplug(dead)
}

// Somebody asks for a number in use: Open vSwitch renumbers the first port.
func TestStolenNumbers(t *testing.T) {
	n := start(t, nil)
	a, b := n.plug("a", nil), n.plug("b", nil)
	for _, victim := range []string{a.HostInterface(), lab.GatewayName, b.HostInterface()} {
		number, err := n.Switch.Vsctl("get", "interface", victim, "ofport")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Switch.Vsctl("add-port", lab.Bridge, "thief", "--", "set", "interface", "thief", "type=internal", "ofport_request="+number); err != nil {
			t.Fatal(err)
		}
		// Open vSwitch first gives the thief another number and swaps the two when it next looks at its database.
		n.settled(victim+" loses its number", func() error {
			now, err := n.Switch.Vsctl("set", "interface", "thief", "external_ids:look=again", "--", "get", "interface", victim, "ofport")
			if err == nil && now == number {
				err = fmt.Errorf("still %s", now)
			}
			return err
		})
		n.settled("traffic after the number of "+victim+" was stolen", func() error {
			if _, err := lab.Ping(a.NetNS, a.Addr(false), b.Addr(false), 56, silence); err != nil {
				return err
			}
			_, err := lab.Ping(b.NetNS, b.Addr(true), b.Gateway(true), 56, silence)
			return err
		})
		n.pings(a, b)
		n.pingsGateway(a)
		n.pingsGateway(b)
		// The thief does not get the traffic.
		for _, flow := range n.flows() {
			if strings.Contains(flow+",", "in_port="+number+",") {
				t.Errorf("a flow stands on the number that is the thief's now: %s", flow)
			}
		}
		if _, err := n.Switch.Vsctl("del-port", lab.Bridge, "thief"); err != nil {
			t.Fatal(err)
		}
	}
	// The gateway gets its old number back, so that the flows can be compared with those before.
	if _, err := n.Switch.Vsctl("set", "interface", lab.GatewayName, "ofport_request=1"); err != nil {
		t.Fatal(err)
	}
	n.settled("traffic after the gateway moved once more", func() error {
		_, err := lab.Ping(a.NetNS, a.Addr(false), a.Gateway(false), 56, silence)
		return err
	})
}

// The node reboots: namespaces and interfaces are gone, the database is not.
func TestReboot(t *testing.T) {
	n := start(t, map[string]any{"syncPeriod": "1s"})
	for i := range 3 {
		p := n.plug(fmt.Sprintf("p%d", i), nil)
		delete(n.pods, p.Name)
	}
	if err := n.KillAgent(); err != nil {
		t.Fatal(err)
	}
	if err := n.Switch.StopVswitchd(); err != nil {
		t.Fatal(err)
	}
	namespaces, err := filepath.Glob("/run/netns/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range namespaces {
		if err := nettest.DeleteNS(path); err != nil {
			t.Error(err)
		}
	}
	if err := os.RemoveAll(n.StateDir()); err != nil {
		t.Fatal(err)
	}
	if err := n.Switch.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.nothingLeft()
	n.pings(n.plug("a", nil), n.plug("b", nil))
}
