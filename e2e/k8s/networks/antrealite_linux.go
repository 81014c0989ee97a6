package networks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// antreaLite is the shipped manifest, on the userspace datapath: the machine's
// kernel seldom has the openvswitch module, and the nodes share it.
type antreaLite struct{ root string }

func (a antreaLite) Install(ctx context.Context, c *cluster.Cluster) error {
	manifest, err := os.ReadFile(filepath.Join(a.root, "deploy", "antrea-lite.yaml"))
	if err != nil {
		return err
	}
	const shipped, ours = "\n    datapath: system\n", "\n    datapath: netdev\n"
	if strings.Count(string(manifest), shipped) != 1 {
		return fmt.Errorf("deploy/antrea-lite.yaml does not have %q once", shipped)
	}
	apply := c.KubectlCommand(ctx, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(strings.Replace(string(manifest), shipped, ours, 1))
	if err := run(apply); err != nil {
		return err
	}
	return run(c.KubectlCommand(ctx, "rollout", "status", "--timeout=80s", "-n", "kube-system", "daemonset/antrea-lite"))
}

// Rebooted has nothing to do: the agent makes all that a boot loses.
func (antreaLite) Rebooted(context.Context, *cluster.Cluster) error { return nil }

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
