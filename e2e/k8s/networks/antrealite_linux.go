package networks

import (
	"context"
	"encoding/json"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// antreaLite runs the agent as it is without Kubernetes, in a DaemonSet: each
// node's Pod CIDRs are in a configuration of its own, and the harness makes the
// routes between the nodes.
type antreaLite struct{ root string }

func (a antreaLite) Install(ctx context.Context, c *cluster.Cluster) error {
	ranges, err := podRanges(ctx, c)
	if err != nil {
		return err
	}
	configs := map[string]string{}
	for i, n := range c.Nodes() {
		conf, err := json.Marshal(map[string]any{"podCIDRs": ranges[i], "datapath": "netdev", "cniConfDir": "/host/etc/cni/net.d"})
		if err != nil {
			return err
		}
		configs[n.Name+".yaml"] = string(conf)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "antrea-lite-nodes", Namespace: metav1.NamespaceSystem}, Data: configs}
	if _, err := c.Client().CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "apply", "-f", filepath.Join(a.root, "e2e/k8s/manifests/standalone.yaml")); err != nil {
		return err
	}
	if err := c.RoutePods(ranges); err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "rollout", "status", "--timeout=80s", "-n", cm.Namespace, "daemonset/antrea-lite")
	return err
}

// Rebooted makes the routes again, which were lost with the node's network.
func (a antreaLite) Rebooted(ctx context.Context, c *cluster.Cluster) error {
	return bridge{}.Rebooted(ctx, c)
}
