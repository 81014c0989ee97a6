package k8s

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/k8s/build"
	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
	"github.com/antrea-lite/podnet/e2e/k8s/networks"
	"github.com/antrea-lite/podnet/e2e/lab"
)

// What the scenarios run against; set from flags before any test starts.
var options struct {
	root       string
	network    string
	containerd string
	dual       bool
	pods       int
	churn      int
}

// shared is the cluster that all scenarios use.
var shared *cluster.Cluster

// connection is the shared cluster's network.
var connection networks.Network

// patience is how long anything may take that takes a second on an idle machine.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	cluster.Main()
	flag.StringVar(&options.root, "root", ".", "top of the source tree, where .cache/k8s and bin are")
	flag.StringVar(&options.network, "network", "bridge", "what connects the Pods: bridge or antrea-lite")
	flag.StringVar(&options.containerd, "containerd", "", "directory of the containerd to use; one is built by default")
	flag.BoolVar(&options.dual, "dual", false, "IPv6 beside IPv4")
	flag.IntVar(&options.pods, "pods", 100, "Pods at once in the scenario about many Pods")
	flag.IntVar(&options.churn, "churn", 500, "Pods that the scenario about churn creates and deletes")
	flag.Parse()
	os.Exit(run(m))
}

// run makes a cluster, runs the scenarios, removes the cluster and demands that
// the machine looks as before.
func run(m *testing.M) int {
	var before lab.Listing
	err := cluster.RemoveDead(context.Background(), filepath.Join(options.root, ".cache", "k8s", dirPrefix))
	if err == nil {
		before, err = cluster.Traces()
	}
	if err == nil {
		err = start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/k8s:", err)
		return 1
	}
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	err = shared.Down(ctx)
	if err == nil {
		note(fmt.Sprintf("cluster removed in %s", time.Since(began).Round(time.Millisecond)))
		err = lab.Every(ctx, 100*time.Millisecond, func() error { return unchanged(before) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/k8s: after the cluster's end:", err)
		return 1
	}
	return code
}

func start() error {
	root, err := filepath.Abs(options.root)
	if err != nil {
		return err
	}
	options.root = root
	if connection, err = networks.ByName(options.network, root); err != nil {
		return err
	}
	ctx := context.Background()
	parts, err := (&build.Builder{Root: root, Progress: note}).Cluster(ctx, options.containerd)
	if err != nil {
		return err
	}
	began := time.Now()
	progress := func(step string) { note(fmt.Sprintf("%6.1f s  %s", time.Since(began).Seconds(), step)) }
	dir := filepath.Join(root, ".cache", "k8s", fmt.Sprint(dirPrefix, os.Getpid()))
	shared, err = cluster.Up(ctx, cluster.Config{Dir: dir, DualStack: options.dual, Parts: parts, Bound: true}, progress)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the nodes do not become Ready"))
	defer cancel()
	err = connection.Install(ctx, shared)
	if err == nil {
		err = lab.Every(ctx, 100*time.Millisecond, func() error { return nodesReady(ctx) })
	}
	if err == nil {
		// A network may make what it needs, such as a bridge, for a node's first Pod.
		err = firstPods(ctx)
	}
	if err != nil {
		return errors.Join(err, shared.Down(context.Background()))
	}
	progress("nodes Ready with " + options.network)
	return nil
}

// dirPrefix begins the names of directories of tests' clusters; the process id follows.
const dirPrefix = "test-"

func unchanged(before lab.Listing) error {
	after, err := cluster.Traces()
	if err != nil {
		return err
	}
	if diff := after.Diff(before); diff != "" {
		return fmt.Errorf("the machine differs from before:\n%s", diff)
	}
	return nil
}

func note(text string) { fmt.Fprintln(os.Stderr, text) }
