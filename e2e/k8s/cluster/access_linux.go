package cluster

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// Kubeconfig is the administrator's; its server is in the control plane's
// network namespace.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.cfg.Dir, "pki", "admin.kubeconfig") }

// Client is the administrator's.
func (c *Cluster) Client() *kubernetes.Clientset { return c.client }

// REST is a configuration for further clients: it dials in the control plane's
// network namespace, since the machine has no way to the fabric.
func (c *Cluster) REST() (*rest.Config, error) {
	conf, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	conf.QPS, conf.Burst = -1, 0 // no limit
	conf.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		return lab.Dial(ctx, lab.Endpoint{NS: c.ControlNS()}, to)
	}
	return conf, nil
}

func (c *Cluster) connect() error {
	conf, err := c.REST()
	if err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(conf)
	return err
}

// KubectlCommand prepares kubectl as the administrator.
func (c *Cluster) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	// Only the network is entered: kubectl reads files of the machine.
	flags := []string{"--target", strconv.Itoa(c.control.PID()), "--net", "--", filepath.Join(c.cfg.Parts.Kubeall, "kubectl")}
	cmd := exec.CommandContext(ctx, "nsenter", append(flags, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	return cmd
}

// Kubectl runs kubectl as the administrator and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return output(c.KubectlCommand(ctx, args...))
}
