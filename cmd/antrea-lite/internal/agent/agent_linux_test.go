package agent

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
