package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/health"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/socket"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/cmd/internal/sockettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, sockettest.Lasting()) }

// antrea runs the command line and returns what it printed.
func antrea(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := New("v1.2.3", &out)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// fakeAgent answers the questions on a socket.
func fakeAgent(t *testing.T, answers map[string]any) (path string) {
	t.Helper()
	path = sockettest.Path(t)
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			v = &cniapi.Error{Code: 3, Msg: "no such Pod " + r.URL.Query().Get("q"), Details: "list them"}
		}
		json.NewEncoder(w).Encode(v)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return path
}

func ports() []api.Port {
	return []api.Port{
		{Pod: "default/web-0", ContainerID: "0123456789abcdef0123", IfName: "eth0", Host: "podabcdef012345", OFPort: 7, State: "ready",
			MAC: "0a:58:0a:0a:00:05", IPs: []netip.Prefix{netip.MustParsePrefix("10.10.0.5/24"), netip.MustParsePrefix("fd00::5/64")}, MTU: 1500, Created: time.Now().Add(-3 * time.Minute)},
		{ContainerID: "x", IfName: "net1", Host: "podx", State: "waiting", Waiting: "an OpenFlow port number", MAC: "0a:58:0a:0a:00:06", VLAN: 10, Created: time.Now()},
	}
}

func TestPorts(t *testing.T) {
	socket := fakeAgent(t, map[string]any{api.PathPorts: ports()})
	out, err := antrea(t, "ports", "--cni-socket", socket)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	column := func(word string) int { return strings.Index(lines[0], word) }
	for _, c := range []struct {
		line       int
		head, want string
	}{
		{1, "POD", "default/web-0"}, {1, "CONTAINER", "0123456789ab "}, {1, "OFPORT", "7 "}, {1, "STATE", "ready"}, {1, "IPS", "10.10.0.5,fd00::5 "}, {1, "AGE", "3m"},
		{2, "POD", "-"}, {2, "OFPORT", "-"}, {2, "STATE", "waiting for an OpenFlow port number"}, {2, "VLAN", "10"},
	} {
		if got := lines[c.line][column(c.head):]; !strings.HasPrefix(got, c.want) {
			t.Errorf("line %d, column %s: %q, want %q", c.line, c.head, got, c.want)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("colours where no terminal is: %q", out)
	}
	wide, err := antrea(t, "ports", "-o", "wide", "--cni-socket", socket)
	if err != nil || !strings.Contains(wide, "0123456789abcdef0123") || !strings.Contains(wide, "10.10.0.5/24") {
		t.Errorf("wide: %v\n%s", err, wide)
	}
	raw, err := antrea(t, "ports", "-o", "json", "--cni-socket", socket)
	var got []api.Port
	if err != nil || json.Unmarshal([]byte(raw), &got) != nil || len(got) != 2 || got[1].Waiting != "an OpenFlow port number" {
		t.Errorf("json: %v\n%s", err, raw)
	}
}

// TestWaitingPort: since when, how often looked at, and for what.
func TestWaitingPort(t *testing.T) {
	p := ports()[1]
	p.Waiting, p.WaitingFor, p.WaitingSince, p.Attempts = "host interface tap0 has not appeared yet", "device", time.Now().Add(-90*time.Second), 21
	out, err := antrea(t, "ports", "--cni-socket", fakeAgent(t, map[string]any{api.PathPorts: []api.Port{p}}))
	if want := "waiting 90s, 21 attempts, for host interface tap0 has not appeared yet"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, want %q in\n%s", err, want, out)
	}
}

func TestEvents(t *testing.T) {
	events := []api.Event{
		{Time: time.Now().Add(-3 * time.Minute), Type: "Warning", Reason: "NetworkNotReady", Pod: "default/web-0", ContainerID: "0123456789abcdef", IfName: "eth0", Message: "no number"},
		{Time: time.Now(), Type: "Normal", Reason: "NetworkReady", ContainerID: "x", IfName: "net1", Message: "flows are in"},
	}
	socket := fakeAgent(t, map[string]any{api.PathEvents: events})
	out, err := antrea(t, "events", "web-0", "--cni-socket", socket)
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, words := range [][]string{{"AGE", "REASON"}, {"3m", "Warning", "NetworkNotReady", "default/web-0", "0123456789ab/eth0", "no number"}, {"0s", "Normal", "NetworkReady", "-", "x/net1"}} {
		for _, w := range words {
			if !strings.Contains(lines[i], w) {
				t.Errorf("line %d: %q is missing in %q", i, w, lines[i])
			}
		}
	}
	out, err = antrea(t, "events", "-o", "json", "--cni-socket", socket)
	var got []api.Event
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || len(got) != 2 || got[0].Message != "no number" {
		t.Errorf("json: %v\n%s", err, out)
	}
}

func TestStatus(t *testing.T) {
	s := api.Status{Version: "v9", PID: 42, Ready: true, Started: time.Now(), Parts: []health.State{{Name: "ovsdb", OK: true}},
		Bridge: api.Bridge{Name: "br-int", Datapath: "system"}, Ranges: []api.Range{{Prefix: netip.MustParsePrefix("10.10.0.0/24"), Taken: 253, Size: "253", Full: true}},
		Ports: map[string]int{"ready": 3, "waiting": 1}}
	out, err := antrea(t, "status", "--cni-socket", fakeAgent(t, map[string]any{api.PathStatus: s}))
	for _, w := range []string{"ready", "v9", "pid 42", "br-int", "10.10.0.0/24", "full", "3 ready, 1 waiting"} {
		if !strings.Contains(out, w) {
			t.Errorf("%q is missing in\n%s", w, out)
		}
	}
	if err != nil {
		t.Error(err)
	}
	s.Ready, s.Parts[0] = false, health.State{Name: "ovsdb", Reason: "db.sock is missing"}
	out, err = antrea(t, "status", "--cni-socket", fakeAgent(t, map[string]any{api.PathStatus: s}))
	if !errors.Is(err, errNotReady) || !strings.Contains(out, "db.sock is missing") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFlows(t *testing.T) {
	flows := []api.Flows{{Port: ports()[0], Want: []string{"table=0, wanted"}, Switch: []string{"Classifier: table=0, there"}}}
	socket := fakeAgent(t, map[string]any{api.PathFlows: flows})
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"flows", "web-0"}, "Classifier: table=0, there"}, {[]string{"trace", "web-0", "--want"}, "table=0, wanted"}} {
		out, err := antrea(t, append(c.args, "--cni-socket", socket)...)
		if err != nil || !strings.Contains(out, c.want) || !strings.Contains(out, "default/web-0") {
			t.Errorf("%v: %v\n%s", c.args, err, out)
		}
	}
	if _, err := antrea(t, "flows", "nobody", "--cni-socket", fakeAgent(t, nil)); err == nil || !strings.Contains(err.Error(), "nobody") || !strings.Contains(err.Error(), "list them") {
		t.Errorf("unknown Pod: %v", err)
	}
}

// TestMistakes on the command line: one line that helps.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{[]string{"agent"}, []string{"podCIDRs", "--pod-cidrs"}},
		{[]string{"agent", "--pod-cidrs", "10.0.0.0/33"}, []string{"10.0.0.0/33"}},
		{[]string{"agent", "--config", "/nonexistent.yaml"}, []string{"/nonexistent.yaml"}},
		{[]string{"agent", "--mtuu", "1"}, []string{"mtuu"}},
		{[]string{"prots"}, []string{"prots", "ports"}},
		{[]string{"ports", "-o", "xml"}, []string{"xml", "json"}},
		{[]string{"ports", "--cni-socket", "/nonexistent/s"}, []string{"/nonexistent/s", "antrea-lite agent"}},
		{[]string{"flows"}, []string{"arg"}},
	} {
		_, err := antrea(t, c.args...)
		if err == nil {
			t.Errorf("%v: accepted", c.args)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v: %q does not say %q", c.args, err, w)
			}
		}
	}
}

// TestHelpTeaches: every command explains itself with an example.
func TestHelpTeaches(t *testing.T) {
	root := New("v1", os.Stdout)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s: no short help", c.CommandPath())
		}
		if c.Name() != "version" && (c.Example == "" || c.Long == "") {
			t.Errorf("%s: no example or no long help", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	if out, err := antrea(t, "version"); err != nil || out != "v1.2.3\n" {
		t.Errorf("version: %q %v", out, err)
	}
	if out, err := antrea(t, "--version"); err != nil || out != "v1.2.3\n" {
		t.Errorf("--version: %q %v", out, err)
	}
}
