package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// What the scenarios run against; set from flags before any test starts.
var options struct {
	datapath string
	agent    string
	cni      string
	pods     int
}

func TestMain(m *testing.M) {
	// Copied into a directory of plugins, this program is one (ipam_linux_test.go).
	if filepath.Base(os.Args[0]) == fakeIPAM {
		os.Exit(actAsIPAM())
	}
	flag.StringVar(&options.datapath, "datapath", "netdev", "datapath of Open vSwitch: netdev (userspace) or system (kernel)")
	flag.StringVar(&options.agent, "agent", "../bin/antrea-lite", "the agent's binary")
	flag.StringVar(&options.cni, "cni", "../bin/antrea-lite-cni", "the plugin's binary")
	flag.IntVar(&options.pods, "pods", 200, "Pods in the scenarios about many Pods")
	flag.Parse()
	nettest.Main()
	for _, path := range []string{options.agent, options.cni} {
		if _, err := os.Stat(path); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: %v\nThe scenarios drive the built binaries: run `make build`, or name them with -agent and -cni.\n", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// node is a running node with what a test needs around it. At the test's end
// every Pod is unplugged, and nothing may be left of any.
type node struct {
	*lab.Node
	t        *testing.T
	pods     map[string]*lab.Pod
	baseline lab.Listing
}

// start starts a switch and an agent that is ready.
func start(t *testing.T, extra map[string]any) *node {
	t.Helper()
	n := prepare(t, extra)
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.setBaseline()
	return n
}

// prepare starts a switch and leaves the agent to the test.
func prepare(t *testing.T, extra map[string]any) *node {
	t.Helper()
	before, err := lab.Machine()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := lab.NewNode(lab.NodeConfig{Agent: options.agent, CNI: options.cni, Datapath: options.datapath, Extra: extra})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Node: ln, t: t, pods: map[string]*lab.Pod{}}
	t.Cleanup(func() {
		n.unplugAll()
		if t.Failed() {
			t.Logf("agent's log:\n%s\novs-vswitchd's log:\n%s", n.AgentLog(80), n.Switch.LogTail(20))
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		n.settled("the node is gone", func() error {
			after, err := lab.Machine()
			return orDiff(err, after, before)
		})
	})
	return n
}

// setBaseline records what the node has without Pods.
func (n *node) setBaseline() {
	n.t.Helper()
	var err error
	if n.baseline, err = n.State(); err != nil {
		n.t.Fatal(err)
	}
}

// unplugAll unplugs what is still plugged and demands the baseline again.
func (n *node) unplugAll() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range n.pods {
		if err := n.Unplug(ctx, p); err != nil {
			n.t.Error(err)
		}
		delete(n.pods, p.Name)
	}
	if n.baseline != nil {
		n.nothingLeft()
	}
}

// nothingLeft demands that the node looks as it did before the first Pod.
func (n *node) nothingLeft() {
	n.t.Helper()
	n.settled("no Pod is left", func() error {
		now, err := n.State()
		return orDiff(err, now, n.baseline)
	})
}

func orDiff(err error, now, before lab.Listing) error {
	if err != nil {
		return err
	}
	if diff := now.Diff(before); diff != "" {
		return fmt.Errorf("differs:\n%s", diff)
	}
	return nil
}

// plug plugs a Pod in; the test ends when that fails.
func (n *node) plug(name string, extra map[string]any) *lab.Pod {
	n.t.Helper()
	p, err := n.Plug(n.t.Context(), name, extra)
	if err != nil {
		n.t.Fatal(err)
	}
	n.pods[name] = p
	return p
}

// unplug unplugs one Pod.
func (n *node) unplug(p *lab.Pod) {
	n.t.Helper()
	delete(n.pods, p.Name)
	if err := n.Unplug(n.t.Context(), p); err != nil {
		n.t.Fatal(err)
	}
}
