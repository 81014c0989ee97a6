package k8s

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/k8s/workload"
)

func nodesReady(ctx context.Context) error {
	nodes, err := shared.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range nodes.Items {
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
				return fmt.Errorf("node %s is not Ready: %s", n.Name, cond.Message)
			}
		}
	}
	return nil
}

// firstPods runs a Pod on every node, and removes it.
func firstPods(ctx context.Context) error {
	s := starter(metav1.NamespaceDefault)
	if _, err := s.AtOnce(ctx, len(s.Nodes)); err != nil {
		return err
	}
	return s.Remove(ctx)
}

// starter starts Pods on all nodes in turn.
func starter(namespace string) workload.Starter {
	s := workload.Starter{Client: shared.Client(), Namespace: namespace}
	for _, n := range shared.Nodes() {
		s.Nodes = append(s.Nodes, n.Name)
	}
	return s
}
