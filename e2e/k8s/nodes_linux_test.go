package k8s

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/lab"
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
	pods := shared.Client().CoreV1().Pods(metav1.NamespaceDefault)
	for _, n := range shared.Nodes() {
		if _, err := pods.Create(ctx, testPod(metav1.NamespaceDefault, "first-on-"+n.Name, n.Name), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	err := lab.Every(ctx, 100*time.Millisecond, func() error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		for i := range list.Items {
			err = errors.Join(err, isReady(&list.Items[i]))
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return lab.Every(ctx, 100*time.Millisecond, func() error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d first Pods are still there", len(list.Items))
		}
		return err
	})
}
