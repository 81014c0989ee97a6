package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

const patience = 30 * time.Second

// plugin is the CNI plugin's binary, built once.
var plugin string

func TestMain(m *testing.M) {
	nettest.Main()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "plugin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	plugin = filepath.Join(dir, "antrea-lite-cni")
	build := exec.Command("go", "build", "-o", plugin, "github.com/antrea-lite/podnet/cmd/antrea-lite-cni")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// node is a switch and the configuration of an agent.
type node struct {
	t    *testing.T
	sw   *vswitchtest.Switch
	dir  string
	conf *config.Config

	stop func() error // ends the agent; nil: none runs
	log  *safeBuffer
}

// newNode starts a private switch. The agent's configuration fits it.
func newNode(t *testing.T) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &node{t: t, sw: vswitchtest.Start(t), dir: dir, conf: config.Default(), log: &safeBuffer{}}
	n.conf.PodCIDRs = config.List{"10.10.0.0/24"}
	n.conf.Datapath = "netdev"
	n.conf.OVSDB = "unix:" + n.sw.DBSock()
	n.conf.OVSRunDir = n.sw.Dir
	n.conf.Gateway.Name = "gw0"
	n.conf.CNISocket = filepath.Join(dir, "cni.sock")
	n.conf.StateDir = filepath.Join(dir, "leases")
	n.conf.LockDir = dir
	n.conf.Verbosity = 1
	t.Cleanup(func() {
		if n.stop != nil {
			if err := n.stop(); err != nil {
				t.Errorf("the agent ended with %v", err)
			}
		}
		if t.Failed() {
			t.Logf("agent's log:\n%s", n.log)
		}
	})
	return n
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// run runs an agent until ctx ends.
func (n *node) run(ctx context.Context) error {
	checked, err := n.conf.Check()
	if err != nil {
		return err
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(n.conf.Verbosity), textlogger.Output(n.log)))
	return Run(klog.NewContext(ctx, logger), n.conf, checked, "test")
}

// start starts the agent.
func (n *node) start() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.run(ctx) }()
	n.stop = func() error {
		n.stop = nil
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("it does not end")
		}
	}
	n.until("the socket answers", func() error {
		var s api.Status
		return n.get(api.PathStatus, "", &s)
	})
}

// startReady starts the agent and waits until it can serve ADD.
func (n *node) startReady() {
	n.t.Helper()
	n.start()
	n.until("STATUS is well", func() error { _, err := n.cni("STATUS", "", ""); return err })
}

func (n *node) halt() {
	n.t.Helper()
	if err := n.stop(); err != nil {
		n.t.Fatalf("the agent ended with %v", err)
	}
}

// until repeats check until it is content.
func (n *node) until(what string, check func() error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := lab.Until(ctx, check); err != nil {
		n.t.Fatalf("%s: %v", what, err)
	}
}

func (n *node) get(path, q string, v any) error {
	query := map[string][]string{}
	if q != "" {
		query["q"] = []string{q}
	}
	return api.NewClient(n.conf.CNISocket).Get(context.Background(), path, query, v)
}

// page fetches a page on loopback.
func (n *node) page(path string) (int, string) {
	n.t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + n.conf.MetricsAddress + path)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// netConf is a network configuration; more holds further members, each with a comma before it.
func (n *node) netConf(name, more string) string {
	return fmt.Sprintf(`{"cniVersion": "1.1.0", "name": %q, "type": "antrea-lite-cni", "agentSocket": %q%s}`, name, n.conf.CNISocket, more)
}

// call is one run of the plugin.
func (n *node) call(verb, id, conf string) *exec.Cmd {
	cmd := exec.Command(plugin)
	cmd.Stdin = strings.NewReader(conf)
	cmd.Env = []string{"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + id, "CNI_NETNS=/run/netns/" + id, "CNI_IFNAME=eth0", "CNI_PATH=/nonexistent",
		"CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + id}
	return cmd
}

// cni calls the plugin in network "net".
func (n *node) cni(verb, id, more string) ([]byte, error) {
	return n.finish(n.call(verb, id, n.netConf("net", more)))
}

func (n *node) finish(cmd *exec.Cmd) ([]byte, error) {
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	err := cmd.Run()
	e := &cniapi.Error{}
	if err != nil && json.Unmarshal(stdout.Bytes(), e) == nil && e.Msg != "" {
		return stdout.Bytes(), e
	}
	return stdout.Bytes(), err
}

// plug makes a namespace, adds it, and returns its address and the result of ADD.
func (n *node) plug(id, more string) (netip.Addr, []byte) {
	n.t.Helper()
	n.namespace(id)
	out, err := n.cni("ADD", id, more)
	if err != nil {
		n.t.Fatalf("ADD %s: %v", id, err)
	}
	return address(n.t, out), out
}

func (n *node) namespace(id string) {
	n.t.Helper()
	path, err := nettest.NewNS(id)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := nettest.DeleteNS(path); err != nil {
			n.t.Error(err)
		}
	})
}

func address(t *testing.T, result []byte) netip.Addr {
	t.Helper()
	var res struct {
		IPs []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(result, &res); err != nil || len(res.IPs) == 0 {
		t.Fatalf("result %s: %v", result, err)
	}
	return res.IPs[0].Address.Addr()
}

func (n *node) unplug(ids ...string) {
	n.t.Helper()
	for _, id := range ids {
		if _, err := n.cni("DEL", id, ""); err != nil {
			n.t.Errorf("DEL %s: %v", id, err)
		}
	}
}

// pings demands that one ping is answered. "" is the host.
func (n *node) pings(from string, src, dst netip.Addr) {
	n.t.Helper()
	ns := lab.Host
	if from != "" {
		ns = "/run/netns/" + from
	}
	if _, err := lab.Ping(ns, src, dst, 56, 2*time.Second); err != nil {
		n.t.Errorf("ping %s -> %s: %v", src, dst, err)
	}
}

// wantCode demands a CNI error.
func wantCode(t *testing.T, what string, err error, code uint, words ...string) {
	t.Helper()
	var e *cniapi.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: %v, want code %d", what, err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, e, w)
		}
	}
}

// pingable tells whether the host reaches an address.
func pingable(dst netip.Addr) error {
	_, err := lab.Ping(lab.Host, gw, dst, 56, time.Second)
	return err
}
