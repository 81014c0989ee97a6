package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// Times are how long Pods took from their creation until their status said
// Ready, in ascending order.
type Times []time.Duration

// Percentile returns a value by the nearest rank.
func (t Times) Percentile(p int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[max(0, (len(t)*p+99)/100-1)]
}

// Sum returns how long all took that started one after the other.
func (t Times) Sum() (sum time.Duration) {
	for _, d := range t {
		sum += d
	}
	return sum
}

// Starter starts Pods in a namespace, on nodes in turn.
type Starter struct {
	Client    kubernetes.Interface
	Namespace string
	Nodes     []string
}

// AtOnce creates Pods in one go and waits until all are Ready.
func (s Starter) AtOnce(ctx context.Context, count int) (Times, error) {
	return s.start(ctx, count, count)
}

// OneByOne creates each Pod when the one before is Ready.
func (s Starter) OneByOne(ctx context.Context, count int) (Times, error) {
	return s.start(ctx, count, 1)
}

// start keeps as many Pods on their way to Ready as are wanted at a time.
func (s Starter) start(ctx context.Context, count, atATime int) (Times, error) {
	events, err := s.Client.CoreV1().Pods(s.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch Pods: %w", err)
	}
	defer events.Stop()
	created, ready := map[string]time.Time{}, map[string]bool{}
	var times Times
	for len(times) < count {
		for len(created) < count && len(created)-len(times) < atATime {
			name := fmt.Sprint("p", len(created))
			created[name] = time.Now()
			p := Pod(s.Namespace, name, s.Nodes[(len(created)-1)%len(s.Nodes)])
			if _, err := s.Client.CoreV1().Pods(s.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
				return nil, fmt.Errorf("create Pod: %w", err)
			}
		}
		p, err := next(ctx, events)
		if err != nil {
			return nil, fmt.Errorf("%d of %d Pods are Ready: %w", len(times), count, err)
		}
		if begun, ours := created[p.Name]; ours && !ready[p.Name] && Ready(p) == nil {
			ready[p.Name] = true
			times = append(times, time.Since(begun))
		}
	}
	slices.Sort(times)
	return times, nil
}

// next returns the Pod of the next event.
func next(ctx context.Context, events watch.Interface) (*corev1.Pod, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case e, open := <-events.ResultChan():
		if !open {
			return nil, errors.New("the watch of Pods ended")
		}
		if p, ok := e.Object.(*corev1.Pod); ok {
			return p, nil
		}
		return nil, fmt.Errorf("the watch of Pods answered %v", e.Object)
	}
}

// Remove deletes all Pods of the namespace and waits until the API server has
// none of them any more.
func (s Starter) Remove(ctx context.Context) error {
	pods := s.Client.CoreV1().Pods(s.Namespace)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete Pods: %w", err)
	}
	return lab.Every(ctx, 100*time.Millisecond, func() error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d Pods are still there", len(list.Items))
		}
		return err
	})
}
