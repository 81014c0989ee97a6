package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// A mistake in the configuration ends the agent at once, with one clear error.
func TestAgentRefusesBadConfiguration(t *testing.T) {
	n := prepare(t, nil)
	cases := map[string]struct {
		conf  map[string]any
		words []string
	}{
		"no range":            {map[string]any{"podCIDRs": []string{}}, []string{"podCIDRs"}},
		"bad range":           {map[string]any{"podCIDRs": []string{"10.10.0.0/33"}}, []string{"podCIDRs", "10.10.0.0/33"}},
		"host bits":           {map[string]any{"podCIDRs": []string{"10.10.0.5/24"}}, []string{"10.10.0.5/24", "10.10.0.0/24"}},
		"range too small":     {map[string]any{"podCIDRs": []string{"10.10.0.0/31"}}, []string{"10.10.0.0/31", "small"}},
		"gateway outside":     {map[string]any{"gateway": map[string]any{"name": "gw0", "addresses": []string{"192.0.2.1"}}}, []string{"192.0.2.1"}},
		"unknown key":         {map[string]any{"podCIDR": "10.0.0.0/24"}, []string{"podCIDR", "podCIDRs"}},
		"datapath unknown":    {map[string]any{"datapath": "dpdk"}, []string{"datapath", "dpdk"}},
		"bridge too long":     {map[string]any{"bridge": "bridge-of-16-let"}, []string{"bridge-of-16-let"}},
		"endpoint not local":  {map[string]any{"ovsdb": "tcp:192.0.2.1:6640"}, []string{"192.0.2.1"}},
		"endpoint nonsense":   {map[string]any{"ovsdb": "/run/db.sock"}, []string{"/run/db.sock", "unix:"}},
		"MTU below IPv6's":    {map[string]any{"mtu": 1000}, []string{"mtu", "1000", "1280"}},
		"metrics no address":  {map[string]any{"metricsAddress": "everywhere"}, []string{"metricsAddress", "everywhere"}},
		"socket not absolute": {map[string]any{"cniSocket": "cni.sock"}, []string{"cniSocket", "cni.sock"}},
	}
	for what, c := range cases {
		if err := n.Configure(c.conf); err != nil {
			t.Fatal(err)
		}
		n.refuses(what, c.words)
	}
	links, err := lab.Machine()
	if err != nil || strings.Contains(strings.Join(links["interface"], " "), lab.GatewayName) {
		t.Errorf("a refused agent touched the node: %v %v", err, links["interface"])
	}
}

// refuses demands that the agent ends by itself and names every word.
func (n *node) refuses(what string, words []string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	_, err := n.SecondAgent(ctx)
	if err == nil || ctx.Err() != nil {
		n.t.Errorf("%s: the agent ran", what)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			n.t.Errorf("%s: the error does not name %q: %v", what, w, err)
		}
	}
}

func TestBridgeOfAnotherDatapathIsRefused(t *testing.T) {
	n := prepare(t, nil)
	other := "netdev"
	if options.datapath == other {
		other = "system"
	}
	if _, err := n.Switch.Vsctl("--no-wait", "add-br", lab.Bridge, "--", "set", "bridge", lab.Bridge, "datapath_type="+other); err != nil {
		t.Fatal(err)
	}
	n.refuses("bridge on "+other, []string{lab.Bridge, other, options.datapath})
	if _, err := n.Switch.Vsctl("--no-wait", "del-br", lab.Bridge); err != nil {
		t.Fatal(err)
	}
}

func TestPortsOfAnotherManagerAreRefused(t *testing.T) {
	n := prepare(t, nil)
	if err := n.Switch.AddBridge(lab.Bridge, options.datapath); err != nil {
		t.Fatal(err)
	}
	// What a Pod's port of Antrea looks like.
	_, err := n.Switch.Vsctl("add-port", lab.Bridge, "web-1-abcdef", "--", "set", "interface", "web-1-abcdef", "type=internal", "--",
		"set", "port", "web-1-abcdef", `external_ids={antrea-type=container,container-id=0123,pod-name=web-1,pod-namespace=default}`)
	if err != nil {
		t.Fatal(err)
	}
	n.refuses("a bridge with another manager's Pods", []string{"web-1-abcdef"})
	if _, err := n.Switch.Vsctl("del-br", lab.Bridge); err != nil {
		t.Fatal(err)
	}
}

// The agent may come before Open vSwitch; STATUS tells how far it is.
func TestAgentBeforeOpenVSwitch(t *testing.T) {
	n := prepare(t, nil)
	for _, stop := range []func() error{n.Switch.StopVswitchd, n.Switch.StopDB, n.LaunchAgent} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	n.unavailable("the database is away")
	if err := n.Switch.StartDB(); err != nil {
		t.Fatal(err)
	}
	n.unavailable("ovs-vswitchd is away")
	if err := n.Switch.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.setBaseline()
	p := n.plug("p", nil)
	n.pingsGateway(p)

	// Later outages: no new Pods, and those that are there may suffer.
	if err := n.Switch.StopVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.settled("STATUS tells that the switch is away", func() error {
		code := n.status()
		if code != codeUnavailable && code != codeLimited {
			return fmt.Errorf("STATUS code %d", code)
		}
		return nil
	})
	if err := n.Switch.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.regainsGateway(p)
}

// status is STATUS' error code; 0 when ADD can be served, -1 for anything that is no CNI error.
func (n *node) status() int {
	_, err := n.Plugin.Run(n.t.Context(), lab.Call{Command: "STATUS", Stdin: n.NetConf(nil)})
	var e *types.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return int(e.Code)
	}
	return -1
}

// unavailable demands STATUS 50 or 51, and an ADD that says to try again and leaves nothing.
func (n *node) unavailable(why string) {
	n.t.Helper()
	if code := n.status(); code != codeUnavailable && code != codeLimited {
		n.t.Errorf("%s: STATUS code %d, want %d or %d", why, code, codeUnavailable, codeLimited)
	}
	p, err := n.NewPod("early", map[string]any{"timeoutSeconds": 2})
	if err != nil {
		n.t.Fatal(err)
	}
	n.pods[p.Name] = p
	_, err = n.Plugin.Run(n.t.Context(), p.Call("ADD"))
	n.wantError(why+": ADD", err, codeTryAgain)
	delete(n.pods, p.Name)
	if err := nettest.DeleteNS(p.NetNS); err != nil {
		n.t.Error(err)
	}
}
