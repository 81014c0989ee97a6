package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
	"github.com/antrea-lite/podnet/e2e/k8s/networks"
)

// Tests that need what is not here: other clouds, other families, or minutes of
// disturbance.
const skipDefault = `Serial|Disruptive|Slow|DualStack|SCTP|\[Feature:`

// conformance makes a cluster, runs the upstream tests in the network namespace
// of the control plane, from where API server and nodes can be reached, and
// removes the cluster.
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
	test, image, err := b.Conformance(ctx)
	if err != nil {
		return err
	}
	parts.Images = append(parts.Images, image)
	c, err := cluster.Up(ctx, cluster.Config{Dir: filepath.Join(l.root, ".cache", "k8s", fmt.Sprint("conformance-", os.Getpid())), Parts: parts, Bound: true}, l.note)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down(context.WithoutCancel(ctx))) }()
	if err := network.Install(ctx, c); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"); err != nil {
		return err
	}
	// Some tests look names up.
	if _, err := c.Kubectl(ctx, "apply", "-f", filepath.Join(l.root, "e2e/k8s/manifests/coredns.yaml")); err != nil {
		return err
	}
	skip := skipDefault
	if len(args) > 1 {
		skip = args[1]
	}
	l.note("cluster ready, tests matching " + args[0])
	return attach(inControl(ctx, c, test, "--provider=skeleton", "--kubectl-path="+filepath.Join(parts.Kubeall, "kubectl"),
		"-ginkgo.no-color", "-ginkgo.focus="+args[0], "-ginkgo.skip="+skip,
		"--allowed-not-ready-nodes=0", "--delete-namespace-on-failure=true"))
}

func inControl(ctx context.Context, c *cluster.Cluster, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + c.ControlNS(), "--"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	return cmd
}
