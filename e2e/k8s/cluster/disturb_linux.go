package cluster

import (
	"context"
	"errors"
)

// StopAPI stops the API server until StartAPI.
func (c *Cluster) StopAPI() error { return c.control.Stop(apiserverUnit) }

// StartAPI starts the API server and waits until it is ready.
func (c *Cluster) StartAPI(ctx context.Context) error {
	if err := c.control.Start(apiserverUnit); err != nil {
		return err
	}
	return c.apiReady(ctx)
}

// RestartClients starts the components of Kubernetes anew that the API server serves:
// after an outage each pauses for up to a minute before it tries again.
func (c *Cluster) RestartClients() error {
	var errs []error
	again := func(m *machine, units ...string) {
		for _, unit := range units {
			errs = append(errs, m.Stop(unit), m.Start(unit))
		}
	}
	again(&c.control, "kube-controller-manager", "kube-scheduler")
	for _, n := range c.nodes {
		again(&n.machine, "kubelet", "kube-proxy")
	}
	return errors.Join(errs...)
}

// Reboot cuts a node's power and boots it: processes, network and /run are
// lost, the disk stays. It returns when the kubelet has been started.
func (c *Cluster) Reboot(ctx context.Context, n *Node) error {
	if err := n.kill(ctx); err != nil {
		return err
	}
	if err := removeCgroups(c.cgroup(n)); err != nil {
		return err
	}
	if err := c.bootNode(ctx, n); err != nil {
		return err
	}
	return n.startKubelet()
}
