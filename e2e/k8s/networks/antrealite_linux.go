package networks

import (
	"bytes"
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
type antreaLite struct {
	root   string
	tunnel string // geneve or vxlan; "": nodes route to each other's Pods
}

func (a antreaLite) Install(ctx context.Context, c *cluster.Cluster) error {
	manifest, err := os.ReadFile(filepath.Join(a.root, "deploy", "antrea-lite.yaml"))
	if err != nil {
		return err
	}
	settings := [][2]string{{"\n    datapath: system\n", "\n    datapath: netdev\n"}}
	if a.tunnel != "" {
		settings = append(settings, [2]string{"\n      mode: noEncap\n", "\n      mode: encap\n      prepareUplink: true\n"},
			[2]string{"\n      tunnel: geneve\n", "\n      tunnel: " + a.tunnel + "\n"})
		// From now on nodes receive through a switch that trusts no checksum.
		if err := c.CompleteChecksums(); err != nil {
			return err
		}
	}
	for _, s := range settings {
		if strings.Count(string(manifest), s[0]) != 1 {
			return fmt.Errorf("deploy/antrea-lite.yaml does not have %q once", s[0])
		}
		manifest = []byte(strings.Replace(string(manifest), s[0], s[1], 1))
	}
	apply := c.KubectlCommand(ctx, "apply", "-f", "-")
	apply.Stdin = bytes.NewReader(manifest)
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
