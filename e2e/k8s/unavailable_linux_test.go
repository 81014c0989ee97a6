package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestNodeWithoutAgent: a node that has been without its agent for longer than
// kubernetes.unavailableAfter is NotReady, and one with a longer patience is not. Their
// Pods talk on. The agents' return makes all Ready.
func TestNodeWithoutAgent(t *testing.T) {
	w := newAntreaLite(t)
	hasty, patient := w.Nodes()[0], w.Nodes()[1]
	a, b := w.pair()
	w.configure(hasty, map[string]any{"kubernetes": map[string]any{"unavailableAfter": "1s"}})
	health := w.watchHealth()
	stop := w.load(ways("across nodes", a, b)...)
	t.Cleanup(func() { w.schedule(true) })
	w.schedule(false)
	w.until("the hasty node is not Ready", func() error {
		harm := health.harmSoFar()
		if !slices.ContainsFunc(harm, func(s string) bool { return strings.HasPrefix(s, "Node "+hasty.Name+" is not Ready") }) {
			return fmt.Errorf("seen: %q", harm)
		}
		return nil
	})
	for _, harm := range health.end() {
		if strings.Contains(harm, patient.Name) {
			t.Error(harm)
		}
	}
	w.lossless(stop)
	w.schedule(true)
	w.until("the agents are Ready", func() error { _, err := w.part(agentPods); return err })
	w.until("the nodes are Ready", func() error { return nodesReady(w.ctx) })
	w.start("later", hasty)
}

// schedule lets the agents' DaemonSet run on all nodes, or on none, and waits until it
// runs on none.
func (w *world) schedule(everywhere bool) {
	w.t.Helper()
	label := `"none"`
	if everywhere {
		label = "null"
	}
	ctx := context.WithoutCancel(w.ctx)
	patch := fmt.Sprintf(`{"spec": {"template": {"spec": {"nodeSelector": {"node": %s}}}}}`, label)
	_, err := w.Client().AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, "antrea-lite", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
	if everywhere {
		return
	}
	w.until("the agents are gone", func() error {
		list, err := w.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: agentPods})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("they are still there")
		}
		return err
	})
}

// harmSoFar is what has been noted until now.
func (h *health) harmSoFar() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.harm)
}
