package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// ask runs a sub-command with -o json and decodes what it prints.
func (n *node) ask(v any, args ...string) {
	n.t.Helper()
	out, err := n.Tool(n.t.Context(), append(args, "-o", "json")...)
	if err == nil {
		err = json.Unmarshal([]byte(out), v)
	}
	if err != nil {
		n.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func TestPortsTellsWhatThereIs(t *testing.T) {
	n := start(t, nil)
	p, vlan := n.plug("p", nil), n.plug("vlan", map[string]any{"vlan": 10})
	type port struct {
		Pod, ContainerID, IfName, Host, State, MAC string
		OFPort                                     int
		VLAN                                       int
		IPs                                        []string
	}
	var ports []port
	n.ask(&ports, "ports")
	if len(ports) != 2 {
		t.Fatalf("%d ports, want 2: %+v", len(ports), ports)
	}
	for _, want := range []*lab.Pod{p, vlan} {
		i := slices.IndexFunc(ports, func(x port) bool { return x.ContainerID == want.ContainerID })
		if i < 0 {
			t.Errorf("%s is not listed", want.Name)
			continue
		}
		got := ports[i]
		number, err := n.Switch.Vsctl("get", "interface", want.HostInterface(), "ofport")
		if err != nil || strconv.Itoa(got.OFPort) != number {
			t.Errorf("%s: ofport %d, OVS says %s %v", want.Name, got.OFPort, number, err)
		}
		mac := n.mac(want)
		if got.Pod != "default/"+want.Name || got.IfName != want.IfName || got.Host != want.HostInterface() || got.State != "ready" ||
			got.MAC != fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]) ||
			len(got.IPs) != 2 || !strings.HasPrefix(got.IPs[0], want.Addr(false).String()+"/") {
			t.Errorf("%s: %+v", want.Name, got)
		}
	}
	table, err := n.Tool(t.Context(), "ports")
	if err != nil || !strings.Contains(table, "default/p") || !strings.Contains(table, p.Addr(true).String()) {
		t.Errorf("table: %v\n%s", err, table)
	}
	flows, err := n.Tool(t.Context(), "flows", "default/p")
	if err != nil || !strings.Contains(flows, p.Addr(false).String()) {
		t.Errorf("flows of default/p: %v\n%s", err, flows)
	}
}

func TestStatusAndCheck(t *testing.T) {
	n := start(t, nil)
	n.plug("p", nil)
	var status struct {
		Ready    bool
		PID      int
		Bridge   struct{ Name, Datapath, OVSVersion string }
		Gateway  struct{ Name string }
		Ports    map[string]int
		Sessions struct{ OVSDB, OpenFlow struct{ Ready bool } }
	}
	n.ask(&status, "status")
	if !status.Ready || status.PID != n.AgentPID() || status.Bridge.Name != lab.Bridge || status.Bridge.Datapath != options.datapath ||
		status.Bridge.OVSVersion == "" || status.Gateway.Name != lab.GatewayName || status.Ports["ready"] != 1 ||
		!status.Sessions.OVSDB.Ready || !status.Sessions.OpenFlow.Ready {
		t.Errorf("status %+v", status)
	}
	if table, err := n.Tool(t.Context(), "status"); err != nil || !strings.Contains(table, lab.Bridge) {
		t.Errorf("status: %v\n%s", err, table)
	}
	var findings []struct{ Level, What, Found, Remedy string }
	n.ask(&findings, "check")
	for _, f := range findings {
		if f.Level == "fail" {
			t.Errorf("check of a node that is well: %+v", f)
		}
	}
	if len(findings) < 5 {
		t.Errorf("check looked at %d things only: %+v", len(findings), findings)
	}
	// Without an agent each says so.
	if err := n.StopAgent(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ports"}, {"status"}} {
		out, err := n.Tool(t.Context(), args...)
		if err == nil || !strings.Contains(err.Error(), "agent") || !strings.Contains(err.Error(), n.Socket()) {
			t.Errorf("%v without an agent: %v\n%s", args, err, out)
		}
	}
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// get fetches a page of the agent's.
func (n *node) get(path string) (int, string) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, "http://"+lab.MetricsAddress+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		n.t.Errorf("%s: %v", path, err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Errorf("%s: %v", path, err)
	}
	return resp.StatusCode, string(body)
}

// metric is the sum of all series of a name whose labels hold every word.
func (n *node) metric(name string, words ...string) float64 {
	n.t.Helper()
	_, body := n.get("/metrics")
	sum, found := 0.0, false
	for line := range strings.Lines(body) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		base, labels, _ := strings.Cut(series, "{")
		if !ok || base != name || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(labels, w) }) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			n.t.Errorf("metric %s: %v", line, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		n.t.Errorf("no metric %s with %v", name, words)
	}
	return sum
}

func TestHealthFollowsOpenVSwitch(t *testing.T) {
	n := start(t, nil)
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := n.get(path); code != http.StatusOK {
			t.Errorf("%s: %d: %s", path, code, body)
		}
	}
	if err := n.Switch.StopVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.settled("/readyz tells that the switch is away", func() error {
		if code, body := n.get("/readyz"); code != http.StatusServiceUnavailable {
			return fmt.Errorf("%d: %s", code, body)
		}
		return nil
	})
	// Restarting the agent would not help, so the probe for that stays content.
	if code, body := n.get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz without a switch: %d: %s", code, body)
	}
	if err := n.Switch.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.settled("/readyz recovers", func() error {
		if code, body := n.get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d: %s", code, body)
		}
		return nil
	})
}

// Whoever opens the socket rules the node's network.
func TestSocketIsRootsAlone(t *testing.T) {
	n := start(t, nil)
	info, err := os.Stat(n.Socket())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the socket: %v %v, want 0600", info, err)
	}
}

func TestMetricsMove(t *testing.T) {
	n := start(t, nil)
	n.unplug(n.plug("a", nil))
	n.plug("b", nil)
	for _, m := range []struct {
		name  string
		words []string
		least float64
	}{
		{"antrea_lite_cni_request_duration_seconds_count", []string{`verb="add"`, `outcome="ok"`}, 2},
		{"antrea_lite_cni_request_duration_seconds_count", []string{`verb="del"`, `outcome="ok"`}, 1},
		{"antrea_lite_port_number_seconds_count", nil, 2},
		{"antrea_lite_port_flows_seconds_count", nil, 2},
		{"antrea_lite_bundle_duration_seconds_count", []string{`outcome="ok"`}, 3},
		{"antrea_lite_ovsdb_transaction_duration_seconds_count", nil, 3},
		{"antrea_lite_connected", []string{`link="ovsdb"`}, 1},
		{"antrea_lite_connected", []string{`link="openflow"`}, 1},
		{"antrea_lite_interfaces", []string{`state="ready"`}, 1},
		{"antrea_lite_build_info", nil, 1},
	} {
		if got := n.metric(m.name, m.words...); got < m.least {
			t.Errorf("%s%v is %g, want %g at least", m.name, m.words, got, m.least)
		}
	}
	before := n.metric("antrea_lite_reconnects_total", `link="openflow"`)
	if err := n.Switch.KillVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := n.Switch.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.settled("the reconnect is counted", func() error {
		if got := n.metric("antrea_lite_reconnects_total", `link="openflow"`); got <= before {
			return fmt.Errorf("reconnects %g, before %g", got, before)
		}
		return nil
	})
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}
