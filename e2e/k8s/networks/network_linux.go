package networks

import (
	"context"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// Network connects the Pods of a cluster.
type Network interface {
	// Install makes it the cluster's network; the nodes become Ready after it.
	Install(ctx context.Context, c *cluster.Cluster) error
	// Rebooted makes good what a reboot of a node took away.
	Rebooted(ctx context.Context, c *cluster.Cluster) error
}

// ByName returns a network: "bridge", "antrea-lite", or that with a tunnel between the
// nodes, "antrea-lite-encap" (Geneve) or "antrea-lite-vxlan". root is the top of the
// source tree, where the manifests are.
func ByName(name, root string) (Network, error) {
	switch name {
	case "bridge":
		return bridge{}, nil
	case "antrea-lite":
		return antreaLite{root: root}, nil
	case "antrea-lite-encap":
		return antreaLite{root: root, tunnel: "geneve"}, nil
	case "antrea-lite-vxlan":
		return antreaLite{root: root, tunnel: "vxlan"}, nil
	}
	return nil, fmt.Errorf("no network %q: there are bridge, antrea-lite, antrea-lite-encap and antrea-lite-vxlan", name)
}

// RouteControl gives the control plane routes to the Pods, whatever the network.
func RouteControl(ctx context.Context, c *cluster.Cluster) error {
	ranges, err := podRanges(ctx, c)
	if err != nil {
		return err
	}
	return c.RouteControl(ranges)
}

// podRanges are the Pod CIDRs that the controller manager gave the nodes, in the
// order of Nodes.
func podRanges(ctx context.Context, c *cluster.Cluster) ([][]netip.Prefix, error) {
	var all [][]netip.Prefix
	for _, n := range c.Nodes() {
		node, err := c.Client().CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		var cidrs []netip.Prefix
		for _, s := range node.Spec.PodCIDRs {
			cidr, err := netip.ParsePrefix(s)
			if err != nil {
				return nil, fmt.Errorf("podCIDR of %s: %w", n.Name, err)
			}
			cidrs = append(cidrs, cidr)
		}
		all = append(all, cidrs)
	}
	return all, nil
}
