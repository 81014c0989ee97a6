package wine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

const (
	bridge  = "br-int"
	network = "antrea-lite"
	pipe    = `\\.\pipe\antrea-lite-cni`

	// patience is for what takes a second or two on a quiet machine.
	patience = 60 * time.Second
)

// node is a Windows node. Its methods are for the test's goroutine, but for
// those of Pods.
type node struct {
	t       *testing.T
	dir     string
	prefix  prefix
	sw      *vswitchtest.Switch
	hns     *fakehns.Server
	hnsAddr string
	conf    map[string]any
	agent   *exec.Cmd
	plugin  lab.Plugin
	bare    []string // what is on the node without Pods
}

// nodeOptions are what a scenario may want otherwise.
type nodeOptions struct {
	pipes     bool           // reach Open vSwitch over named pipes
	noNetwork bool           // start without the HNS network
	noAgent   bool           // leave the agent's start to the test
	conf      map[string]any // further configuration
}

func start(t *testing.T, o nodeOptions) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), hns: fakehns.New()}
	n.prefix = newPrefix(t)
	n.sw = vswitchtest.Start(t)
	var err error
	if n.hnsAddr, err = n.hns.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.hns.Close() })
	if !o.noNetwork {
		n.makeNetwork()
	}
	n.conf = map[string]any{
		"podCIDRs": []string{"10.10.0.0/24"}, "bridge": bridge, "datapath": "netdev", "cniSocket": pipe,
		"stateDir": windows(n.dir + "/leases"), "lockDir": windows(n.dir), "metricsAddress": "",
		"hns": map[string]any{"network": network}, "verbosity": 2,
	}
	db, of := joinTCP(t, n.sw.DBSock()), joinTCP(t, n.sw.MgmtSock(bridge))
	if o.pipes {
		n.startPipes(db, of)
	} else {
		n.conf["ovsdb"], n.conf["openflow"] = "tcp:"+db, "tcp:"+of
	}
	maps.Copy(n.conf, o.conf)
	n.plugin = n.wrap()
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			t.Logf("agent:\n%s", n.log())
		}
	})
	if !o.noAgent {
		n.startAgent()
		n.bare = n.left()
	}
	return n
}

// makeNetwork is what prepare-node does on a real node.
func (n *node) makeNetwork() {
	n.t.Helper()
	n.hns.SetAdapter(fakehns.Adapter{Name: "Ethernet", Index: 12, MTU: 1500, Up: true, MAC: []byte{2, 0, 0, 0, 0, 1}})
	if _, err := n.hns.CreateNetwork(fmt.Sprintf(`{"Name":%q,"Type":"Transparent","SchemaVersion":{"Major":2,"Minor":0},
		"Policies":[{"Type":"NetAdapterName","Settings":{"NetworkAdapterName":"Ethernet"}}],
		"Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.10.0.0/24","Routes":[{"NextHop":"10.10.0.1","DestinationPrefix":"0.0.0.0/0"}]}]}]}`, network)); err != nil {
		n.t.Fatal(err)
	}
}

// startPipes gives Open vSwitch the names that it has on Windows, which are the
// agent's defaults.
func (n *node) startPipes(db, of string) {
	n.t.Helper()
	cmd := n.prefix.command(n.t.Context(), n.prefix.env(), options.relay,
		`\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock=`+db, `\\.\pipe\C:openvswitchvarrunopenvswitch`+bridge+`.mgmt=`+of)
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "ready") {
		n.t.Fatalf("piperelay: %q, %v", line, err)
	}
	n.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// wrap is the plugin as a container runtime on Linux can start it.
func (n *node) wrap() lab.Plugin {
	n.t.Helper()
	path := filepath.Join(n.dir, "antrea-lite-cni")
	script := "#!/bin/sh\n"
	for _, kv := range n.prefix.env() {
		script += fmt.Sprintf("export '%s'\n", kv)
	}
	script += fmt.Sprintf("exec %s '%s'\n", wine64, options.cni)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		n.t.Fatal(err)
	}
	return lab.Plugin{Path: path, Dirs: `C:\cni`}
}

// startAgent starts the agent and waits until ADD can be served.
func (n *node) startAgent() {
	n.t.Helper()
	n.launchAgent()
	n.eventually("the agent is ready", n.status)
}

func (n *node) launchAgent() {
	n.t.Helper()
	b, err := json.Marshal(n.conf)
	if err != nil {
		n.t.Fatal(err)
	}
	file := filepath.Join(n.dir, "agent.yaml")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		n.t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(n.dir, "agent.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		n.t.Fatal(err)
	}
	defer out.Close()
	n.agent = n.prefix.command(context.WithoutCancel(n.t.Context()), n.prefix.env("FAKE_HNS_ADDR="+n.hnsAddr), options.agent, "agent", "--config", windows(file))
	n.agent.Stdout, n.agent.Stderr = out, out
	if err := n.agent.Start(); err != nil {
		n.t.Fatal(err)
	}
}

// kill ends the agent as a crash does. No agent: nothing.
func (n *node) kill() {
	if n.agent != nil {
		n.agent.Process.Signal(syscall.SIGKILL)
		n.agent.Wait()
		n.agent = nil
	}
}

func (n *node) log() string {
	b, err := os.ReadFile(filepath.Join(n.dir, "agent.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(b), "\n")
	return strings.Join(lines[max(0, len(lines)-120):], "\n")
}

// netConf is the network configuration.
func (n *node) netConf(more map[string]any) []byte {
	c := map[string]any{"cniVersion": "1.1.0", "name": "pods", "type": "antrea-lite-cni", "agentSocket": pipe, "timeoutSeconds": 60}
	maps.Copy(c, more)
	b, err := json.Marshal(c)
	if err != nil {
		n.t.Fatal(err)
	}
	return b
}

// status asks by the plugin whether the agent can serve ADD.
func (n *node) status() error {
	_, err := n.plugin.Run(n.t.Context(), lab.Call{Command: "STATUS", Stdin: n.netConf(nil)})
	return err
}

// tool runs a sub-command of antrea-lite.
func (n *node) tool(args ...string) (string, error) {
	cmd := n.prefix.command(n.t.Context(), n.prefix.env("FAKE_HNS_ADDR="+n.hnsAddr), options.agent, append(args, "--cni-socket", pipe)...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%v: %w: %s", args, err, stderr.String())
	}
	return out.String(), nil
}

// left lists what Pods could leave: ports, flows, HNS endpoints, leases.
func (n *node) left() []string {
	n.t.Helper()
	var all []string
	ports, err := n.sw.Vsctl("list-ports", bridge)
	if err != nil {
		n.t.Fatal(err)
	}
	for p := range strings.FieldsSeq(ports) {
		all = append(all, "port "+p)
	}
	flows, err := n.sw.Ofctl("--no-stats", "dump-flows", "unix:"+n.sw.MgmtSock(bridge))
	if err != nil {
		n.t.Fatal(err)
	}
	for f := range strings.Lines(flows) {
		if _, f, ok := strings.Cut(f, ", "); ok { // a restart changes the cookies
			all = append(all, "flow "+strings.TrimSpace(f))
		}
	}
	for _, e := range n.hns.Endpoints() {
		all = append(all, "endpoint "+e.Name())
	}
	entries, err := filepath.Glob(n.dir + "/leases/*/10.*")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, "lease "+filepath.Base(e))
	}
	slices.Sort(all)
	return all
}

// noHandleIsOpen waits for calls that nobody in the agent waits for any more.
func (n *node) noHandleIsOpen() {
	n.t.Helper()
	n.eventually("no handle of HNS is open", func() error {
		if h := n.hns.OpenHandles(); h != 0 {
			return fmt.Errorf("%d are open", h)
		}
		return nil
	})
}

// bareAgain demands that nothing is left of any Pod.
func (n *node) bareAgain() {
	n.t.Helper()
	n.eventually("nothing is left of the Pods", func() error {
		now := n.left()
		var errs []error
		for _, x := range now {
			if !slices.Contains(n.bare, x) {
				errs = append(errs, errors.New("left: "+x))
			}
		}
		for _, x := range n.bare {
			if !slices.Contains(now, x) {
				errs = append(errs, errors.New("missing: "+x))
			}
		}
		return errors.Join(errs...)
	})
}

// eventually waits for check with the usual patience.
func (n *node) eventually(what string, check func() error) {
	n.t.Helper()
	n.within(patience, what, check)
}

func (n *node) within(limit time.Duration, what string, check func() error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), limit)
	defer cancel()
	if err := lab.Until(ctx, check); err != nil {
		n.t.Fatalf("waiting until %s: %v", what, err)
	}
}
