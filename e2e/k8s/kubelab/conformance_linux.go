package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/e2e/k8s/build"
	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
	"github.com/antrea-lite/podnet/e2e/k8s/networks"
	"github.com/antrea-lite/podnet/e2e/k8s/upstream"
)

// upstreamFlags are about the upstream tests.
type upstreamFlags struct {
	build     bool
	processes int
	report    string
	excluded  bool
}

// conformance makes a cluster, runs the upstream tests against it and removes
// it. The cluster has what some of the tests want: both families, three nodes,
// and zones.
func (l *lab) conformance(ctx context.Context, args []string) (err error) {
	network, err := networks.ByName(l.network, l.root)
	if err != nil {
		return err
	}
	b := l.builder()
	parts, err := b.Cluster(ctx, l.containerd)
	if err != nil {
		return err
	}
	suite := upstream.Suite{Processes: l.upstream.processes, Output: os.Stderr}
	if suite.Dir, suite.Images, err = b.Upstream(ctx, true); err != nil {
		return err
	}
	prefix := filepath.Join(l.root, ".cache", "k8s", "conformance-")
	if err := cluster.RemoveDead(ctx, prefix); err != nil {
		return err
	}
	cfg := cluster.Config{Dir: fmt.Sprint(prefix, os.Getpid()), Nodes: 3, DualStack: true, Parts: parts, Bound: true}
	c, err := cluster.Up(ctx, cfg, l.note)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down(context.WithoutCancel(ctx))) }()
	if err := l.prepare(ctx, c, network); err != nil {
		return err
	}
	sel := upstream.Selection{Skip: upstream.Excluded()}
	if l.upstream.excluded {
		sel.Skip = ""
	}
	if len(args) > 0 {
		sel.Focus = args[0]
	}
	began := time.Now()
	results, err := suite.Run(ctx, c, sel)
	if err != nil {
		return err
	}
	l.note(fmt.Sprintf("%d passed, %d failed, %d skipped themselves", len(results.Of(upstream.Passed)), len(results.Of(upstream.Failed)), len(results.Of(upstream.Skipped))))
	if l.upstream.report != "" {
		if err := l.writeReport(ctx, results, c, began); err != nil {
			return err
		}
	}
	return results.Check()
}

// prepare gives the cluster its network and its DNS. Many tests read what their
// Pods found out through the API server's proxy.
func (l *lab) prepare(ctx context.Context, c *cluster.Cluster, network networks.Network) error {
	if err := network.Install(ctx, c); err != nil {
		return err
	}
	if err := networks.RouteControl(ctx, c); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"},
		{"apply", "-f", filepath.Join(l.root, "e2e/k8s/manifests/coredns.yaml")},
		{"rollout", "status", "--timeout=60s", "-n", "kube-system", "deployment/coredns"},
	} {
		if _, err := c.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes() {
		if _, err := c.Kubectl(ctx, "label", "node", n.Name, "topology.kubernetes.io/zone=zone-of-"+n.Name); err != nil {
			return err
		}
	}
	l.note("cluster ready")
	return nil
}

func (l *lab) writeReport(ctx context.Context, results upstream.Results, c *cluster.Cluster, began time.Time) (err error) {
	describe := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	describe.Dir = l.root
	version, err := describe.Output()
	if err != nil {
		return fmt.Errorf("git describe: %w: the report names the tree's version", err)
	}
	f, err := os.Create(l.upstream.report)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return results.Markdown(f, upstream.Run{
		Kubernetes: build.KubernetesVersion,
		Cluster:    fmt.Sprintf("%d nodes in as many zones, IPv4 and IPv6, kube-proxy with nftables (e2e/k8s/README.md)", len(c.Nodes())),
		Network:    l.network + " " + strings.TrimSpace(string(version)),
		Date:       began, Took: time.Since(began),
	})
}
