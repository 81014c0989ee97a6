package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

var gw = netip.MustParseAddr("10.10.0.1")

// TestLife plugs, checks and unplugs through the real plugin.
func TestLife(t *testing.T) {
	n := newNode(t)
	n.startReady()
	a, _ := n.plug("a", "")
	b, result := n.plug("b", "")
	n.pings("a", a, b)
	n.pings("a", a, gw)
	n.pings("", gw, b)

	if _, err := n.cni("CHECK", "b", `, "prevResult": `+string(result)); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	lie := strings.Replace(string(result), b.String(), "10.10.0.200", 1)
	_, err := n.cni("CHECK", "b", `, "prevResult": `+lie)
	wantCode(t, "CHECK with another address", err, cniapi.CodeCheck, "10.10.0.200", b.String())

	// The same again is answered from the store.
	again, err := n.cni("ADD", "b", "")
	if err != nil || address(t, again) != b {
		t.Errorf("repeated ADD: %v %s", err, again)
	}
	_, err = n.cni("ADD", "b", `, "vlan": 10`)
	wantCode(t, "ADD with other parameters", err, cniapi.CodeConfig)

	var ports []api.Port
	if err := n.get(api.PathPorts, "", &ports); err != nil || len(ports) != 2 || ports[0].Pod != "default/a" || ports[0].State != "ready" || ports[0].Network != "net" {
		t.Errorf("ports %+v %v", ports, err)
	}
	var flows []api.Flows
	if err := n.get(api.PathFlows, "default/a", &flows); err != nil || len(flows) != 1 || len(flows[0].Switch) == 0 || len(flows[0].Switch) != len(flows[0].Want) {
		t.Errorf("flows: %v, %d on the switch, %d wanted", err, len(flows[0].Switch), len(flows[0].Want))
	}
	var findings []api.Finding
	if err := n.get(api.PathCheck, "", &findings); err != nil || len(findings) < 5 {
		t.Errorf("check %+v %v", findings, err)
	}
	for _, f := range findings {
		if f.Level != api.OK {
			t.Errorf("finding %+v", f)
		}
	}
	n.unplug("a", "b", "b", "never-seen")
	n.nothingLeft()
}

// nothingLeft demands that no trace of a Pod is on the node.
func (n *node) nothingLeft() {
	n.t.Helper()
	ports, err := n.sw.Vsctl("list-ports", n.conf.Bridge)
	if err != nil || ports != n.conf.Gateway.Name {
		n.t.Errorf("ports left: %q %v", ports, err)
	}
	links, err := netlink.LinkList()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Attrs().Name, n.conf.HostPrefix) {
			n.t.Errorf("interface %s is left", l.Attrs().Name)
		}
	}
	for _, name := range n.leases() {
		n.t.Errorf("lease %s is left", name)
	}
	var s api.Status
	if err := n.get(api.PathStatus, "", &s); err != nil || len(s.Ports) != 0 {
		n.t.Errorf("status still counts %v, %v", s.Ports, err)
	}
}

func (n *node) leases() (out []string) {
	files, err := filepath.Glob(filepath.Join(n.conf.StateDir, "*", "*.*.*.*"))
	if err != nil {
		n.t.Fatal(err)
	}
	return files
}

// TestEveryStateAnswers asks every question in every state, from before Open vSwitch to after it is gone.
func TestEveryStateAnswers(t *testing.T) {
	n := newNode(t)
	for _, stop := range []func() error{n.sw.StopVswitchd, n.sw.StopDB} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	n.namespace("early")
	n.conf.CNIConfDir = filepath.Join(n.dir, "net.d")
	ask := func(when string, ready bool) {
		t.Helper()
		wantReady := http.StatusOK
		if !ready {
			wantReady = http.StatusServiceUnavailable
		}
		for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/readyz": wantReady, "/nowhere": 404} {
			if code, body := n.page(path); code != want {
				t.Errorf("%s: %s answered %d, want %d: %s", when, path, code, want, body)
			}
		}
		var s api.Status
		if err := n.get(api.PathStatus, "", &s); err != nil || s.Ready != ready {
			t.Errorf("%s: status %+v %v", when, s, err)
		}
		var ports []api.Port
		if err := n.get(api.PathPorts, "", &ports); err != nil {
			t.Errorf("%s: ports: %v", when, err)
		}
		var findings []api.Finding
		if err := n.get(api.PathCheck, "", &findings); err != nil || slices.ContainsFunc(findings, func(f api.Finding) bool { return f.Level == api.Fail }) == ready {
			t.Errorf("%s: check %+v %v", when, findings, err)
		}
		var flows []api.Flows
		wantCode(t, when+": flows", n.get(api.PathFlows, "nobody", &flows), cniapi.CodeUnknown, "nobody")
		_, err := n.cni("STATUS", "", "")
		if ready {
			if err != nil {
				t.Errorf("%s: STATUS: %v", when, err)
			}
			return
		}
		var e *cniapi.Error
		if !errors.As(err, &e) || e.Code != cniapi.CodeUnavailable && e.Code != cniapi.CodeLimited {
			t.Errorf("%s: STATUS: %v", when, err)
		}
	}
	confFile := filepath.Join(n.conf.CNIConfDir, confName)
	n.start()
	ask("no database", false)
	_, err := n.cni("ADD", "early", "")
	wantCode(t, "ADD without a database", err, cniapi.CodeTryAgain, "starting", n.sw.DBSock())
	_, err = n.cni("DEL", "early", "")
	wantCode(t, "DEL without a database", err, cniapi.CodeTryAgain, "starting")
	if err := n.sw.StartDB(); err != nil {
		t.Fatal(err)
	}
	ask("no vswitchd", false)
	if _, err := os.Stat(confFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the CNI configuration is there before the agent is ready: %v", err)
	}
	if err := n.sw.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.until("ready", func() error { _, err := n.cni("STATUS", "", ""); return err })
	ask("well", true)
	n.until("the CNI configuration is installed", func() error {
		b, err := os.ReadFile(confFile)
		if err == nil && !json.Valid(b) {
			err = fmt.Errorf("no JSON: %s", b)
		}
		return err
	})
	if _, err := n.cni("ADD", "early", ""); err != nil {
		t.Error(err)
	}
	n.unplug("early")
	if err := n.sw.StopVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.until("the loss is noticed", func() error {
		if code, _ := n.page("/readyz"); code == http.StatusOK {
			return errors.New("still ready")
		}
		return nil
	})
	ask("vswitchd gone", false)
	if err := n.sw.StopDB(); err != nil {
		t.Fatal(err)
	}
	ask("all gone", false)
	if err := n.sw.StartDB(); err != nil {
		t.Fatal(err)
	}
	if err := n.sw.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.until("ready again", func() error { _, err := n.cni("STATUS", "", ""); return err })
}

// TestRestartKeepsPods, also when the leases are lost.
func TestRestartKeepsPods(t *testing.T) {
	n := newNode(t)
	n.startReady()
	a, _ := n.plug("a", "")
	b, _ := n.plug("b", "")
	n.halt()
	n.pings("a", a, b)
	if err := os.RemoveAll(n.conf.StateDir); err != nil {
		t.Fatal(err)
	}
	n.startReady()
	n.pings("a", a, b)
	n.pings("a", a, gw)
	c, _ := n.plug("c", "")
	if c == a || c == b {
		t.Errorf("the new Pod has %s, which a living one has", c)
	}
	if got := len(n.leases()); got != 3 {
		t.Errorf("%d leases, want 3", got)
	}
	n.unplug("a", "b", "c")
	n.nothingLeft()
}

func TestSecondAgentNamesTheFirst(t *testing.T) {
	n := newNode(t)
	n.startReady()
	err := n.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("second agent: %v", err)
	}
}

// TestRefusals: what waiting cannot cure ends the agent with one message.
func TestRefusals(t *testing.T) {
	n := newNode(t)
	refused := func(what string, words ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := n.run(ctx)
		if err == nil {
			t.Errorf("%s: the agent ran", what)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", what, err, w)
			}
		}
	}
	vsctl := func(args ...string) {
		t.Helper()
		if _, err := n.sw.Vsctl(args...); err != nil {
			t.Fatal(err)
		}
	}
	vsctl("set", "Open_vSwitch", ".", "ovs_version=2.5.12")
	refused("old Open vSwitch", "2.5.12", MinOVS)
	vsctl("clear", "Open_vSwitch", ".", "ovs_version")

	vsctl("--no-wait", "add-br", n.conf.Bridge)
	refused("wrong datapath", n.conf.Bridge, "system", "netdev", "del-br")
	vsctl("--no-wait", "del-br", n.conf.Bridge)

	if err := n.sw.AddBridge(n.conf.Bridge, "netdev"); err != nil {
		t.Fatal(err)
	}
	vsctl("--no-wait", "add-port", n.conf.Bridge, "web-1", "--", "set", "port", "web-1", "external_ids={antrea-type=container,pod-name=web-1}")
	refused("a running Antrea", "web-1", n.conf.Bridge)
	vsctl("--no-wait", "del-port", n.conf.Bridge, "web-1")

	vsctl("add-port", n.conf.Bridge, n.conf.Gateway.Name, "--", "set", "interface", n.conf.Gateway.Name, "type=internal")
	refused("gateway's name taken", n.conf.Gateway.Name, "del-port")
	vsctl("del-br", n.conf.Bridge)

	if err := os.WriteFile(n.conf.CNISocket, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a file where the socket goes", n.conf.CNISocket, "no socket")
	if err := os.Remove(n.conf.CNISocket); err != nil {
		t.Fatal(err)
	}
}

// TestGatewayIsKept: whoever changes it, and when Open vSwitch makes it anew.
func TestGatewayIsKept(t *testing.T) {
	n := newNode(t)
	n.startReady()
	a, _ := n.plug("a", "")
	reaches := func() error {
		if _, err := n.cni("STATUS", "", ""); err != nil {
			return err
		}
		return pingable(a)
	}
	link, err := netlink.LinkByName("gw0")
	if err != nil {
		t.Fatal(err)
	}
	addr, err := netlink.ParseAddr("10.10.0.1/24")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrDel(link, addr); err != nil {
		t.Fatal(err)
	}
	n.until("the address is back", reaches)
	if err := netlink.LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	n.until("the gateway is up", reaches)
	// The userspace datapath's gateway goes with ovs-vswitchd and comes back naked.
	if err := errors.Join(n.sw.KillVswitchd(), n.sw.StartVswitchd()); err != nil {
		t.Fatal(err)
	}
	n.until("the gateway works after a restart of ovs-vswitchd", reaches)
	if _, err := n.sw.Vsctl("del-port", "gw0"); err != nil {
		t.Fatal(err)
	}
	n.until("the gateway works after its port was deleted", reaches)
	// Renumbered by somebody, the flows follow.
	if _, err := n.sw.Vsctl("set", "interface", "gw0", "ofport_request=77"); err != nil {
		t.Fatal(err)
	}
	if number, err := n.sw.Vsctl("get", "interface", "gw0", "ofport"); err != nil || number != "77" {
		t.Fatalf("the gateway's number is %s, %v", number, err)
	}
	n.until("the gateway works with another number", reaches)
	var s api.Status
	n.until("status tells the number", func() error {
		if err := n.get(api.PathStatus, "", &s); err != nil || s.Gateway.OFPort != 77 {
			return fmt.Errorf("gateway %+v, %v", s.Gateway, err)
		}
		return nil
	})
	n.unplug("a")
}

// TestGCStaysInItsNetwork: the runtime names what is valid in one network only.
func TestGCStaysInItsNetwork(t *testing.T) {
	n := newNode(t)
	n.startReady()
	for _, id := range []string{"keep", "gone"} {
		n.plug(id, "")
	}
	n.namespace("other")
	if _, err := n.finish(n.call("ADD", "other", n.netConf("blue", ""))); err != nil {
		t.Fatal(err)
	}
	if _, err := n.cni("GC", "", `, "cni.dev/valid-attachments": [{"containerID": "keep", "ifname": "eth0"}]`); err != nil {
		t.Fatal(err)
	}
	var ports []api.Port
	if err := n.get(api.PathPorts, "", &ports); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, p := range ports {
		left = append(left, p.ContainerID)
	}
	slices.Sort(left)
	if want := []string{"keep", "other"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	n.unplug("keep", "other")
	n.nothingLeft()
}

// TestStopUndoesWhatRuns: an ADD that waits for its number is taken back before the agent ends.
func TestStopUndoesWhatRuns(t *testing.T) {
	n := newNode(t)
	n.startReady()
	n.namespace("a")
	if err := n.sw.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := n.cni("ADD", "a", "")
		done <- err
	}()
	n.until("the port is in OVSDB", func() error {
		ports, err := n.sw.Vsctl("--no-wait", "list-ports", n.conf.Bridge)
		if err == nil && !strings.Contains(ports, n.conf.HostPrefix) {
			err = errors.New("no port of a Pod")
		}
		return err
	})
	start := time.Now()
	n.halt()
	t.Logf("ended after %v", time.Since(start))
	if err := <-done; err == nil {
		t.Error("the ADD succeeded")
	}
	if ports, err := n.sw.Vsctl("--no-wait", "list-ports", n.conf.Bridge); err != nil || strings.Contains(ports, n.conf.HostPrefix) {
		t.Errorf("ports %q %v", ports, err)
	}
	if err := n.sw.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.startReady()
	n.nothingLeft()
}

// TestKilledPluginLeavesNothing, whenever it is killed.
func TestKilledPluginLeavesNothing(t *testing.T) {
	n := newNode(t)
	n.startReady()
	n.namespace("a")
	for delay := time.Millisecond; delay < 40*time.Millisecond; delay += 2 * time.Millisecond {
		cmd := n.call("ADD", "a", n.netConf("net", ""))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(delay) // the moment is what is varied
		cmd.Process.Kill()
		delivered := cmd.Wait() == nil
		if delivered {
			n.unplug("a")
		}
		n.until("nothing is left", func() error {
			var ports []api.Port
			if err := n.get(api.PathPorts, "", &ports); err != nil {
				return err
			}
			if len(ports) > 0 {
				return fmt.Errorf("ports %+v", ports)
			}
			return nil
		})
	}
	n.nothingLeft()
}

// TestBadRequestsLeaveNothing goes through errors that only the whole agent finds.
func TestBadRequestsLeaveNothing(t *testing.T) {
	n := newNode(t)
	n.conf.PodCIDRs = []string{"10.10.0.0/30"} // one Pod
	n.startReady()
	n.namespace("bad")
	for _, c := range []struct {
		what, more string
		code       uint
		words      []string
	}{
		{"outside", `, "runtimeConfig": {"ips": ["192.0.2.1"]}`, cniapi.CodeAddress, []string{"192.0.2.1", "10.10.0.0/30"}},
		{"gateway", `, "runtimeConfig": {"ips": ["10.10.0.1"]}`, cniapi.CodeAddress, []string{"10.10.0.1", "gateway"}},
		{"mac", `, "runtimeConfig": {"mac": "01:00:00:00:00:01"}`, cniapi.CodeConfig, []string{"01:00:00:00:00:01"}},
	} {
		_, err := n.cni("ADD", "bad", c.more)
		wantCode(t, c.what, err, c.code, c.words...)
	}
	n.plug("a", "")
	_, err := n.cni("ADD", "bad", "")
	wantCode(t, "full", err, cniapi.CodeAddress, "10.10.0.0/30", "all 1 addresses")
	var findings []api.Finding
	if err := n.get(api.PathCheck, "", &findings); err != nil || !slices.ContainsFunc(findings, func(f api.Finding) bool {
		return f.Level == api.Fail && strings.Contains(f.What, "10.10.0.0/30")
	}) {
		t.Errorf("check does not tell that the range is full: %+v %v", findings, err)
	}
	// A full range is no reason to call the node unusable.
	if _, err := n.cni("STATUS", "", ""); err != nil {
		t.Errorf("STATUS with a full range: %v", err)
	}
	// Without addresses there is still room.
	if _, err := n.cni("ADD", "bad", `, "ipam": {}`); err != nil {
		t.Errorf("layer 2: %v", err)
	}
	n.unplug("a", "bad")
	n.nothingLeft()
}
