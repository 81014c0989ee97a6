package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// ConditionNetworkReady is the Pod condition that tells whether a Pod's flows are
// in. A Pod that names it in spec.readinessGates gets no traffic from Services before.
const ConditionNetworkReady corev1.PodConditionType = "podnet.antrea-lite.io/NetworkReady"

// maxMessage keeps a condition readable; causes are a line.
const maxMessage = 1024

// Conditions keeps the condition of this node's Pods as it has to be.
//
// True as soon as every interface of the Pod's newest sandbox is ready. False
// only when podnet said NetworkNotReady: a restart of the agent or the switch,
// during which nothing is known for a moment, takes no Pod out of a Service.
// Only Pods that name the condition as a gate, or that were late, get it: for
// the others it would be one more write for each Pod, which nobody reads.
type Conditions struct {
	client kubernetes.Interface
	pods   *Pods
	ifaces func(namespace, name string) []ifstore.Interface
	queue  *queue[types.NamespacedName]
	said   complaints

	mu   sync.Mutex
	late map[ifstore.Key]podnet.Event // NetworkNotReady that no NetworkReady followed
}

// NewConditions returns a Conditions that writes nothing before Run. ifaces
// returns the interfaces of a Pod, oldest first (ifstore.Store.ByPod).
func NewConditions(client kubernetes.Interface, pods *Pods, ifaces func(namespace, name string) []ifstore.Interface) (*Conditions, error) {
	c := &Conditions{client: client, pods: pods, ifaces: ifaces, late: map[ifstore.Key]podnet.Event{}, queue: newQueue[types.NamespacedName]()}
	return c, pods.OnChange(c.look)
}

func (c *Conditions) look(namespace, name string) {
	c.queue.add(types.NamespacedName{Namespace: namespace, Name: name})
}

// Event implements podnet.Events.
func (c *Conditions) Event(_ context.Context, e podnet.Event) {
	c.mu.Lock()
	if e.Type == podnet.NetworkNotReady {
		c.late[e.Key] = e
	} else {
		delete(c.late, e.Key)
	}
	c.mu.Unlock()
	c.look(e.Pod.Namespace, e.Pod.Name)
}

// Changed takes what podnet.Updates reported.
func (c *Conditions) Changed(updates []podnet.Update) {
	for _, u := range updates {
		if u.Removed {
			c.mu.Lock()
			delete(c.late, u.Interface.Key)
			c.mu.Unlock()
		}
		if u.Interface.Pod.Name != "" {
			c.look(u.Interface.Pod.Namespace, u.Interface.Pod.Name)
		}
	}
}

// Run writes conditions until ctx ends.
func (c *Conditions) Run(ctx context.Context) error { return c.queue.run(ctx, c.sync) }

func (c *Conditions) sync(ctx context.Context, name types.NamespacedName) error {
	pod, ok := c.pods.Get(name.Namespace, name.Name)
	if !ok || pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	have := condition(pod)
	want, ok := c.want(pod)
	if !ok || have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
		return nil
	}
	gated := slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == ConditionNetworkReady })
	if have == nil && !gated && want.Status == corev1.ConditionTrue {
		return nil
	}
	if have != nil && have.Status == want.Status {
		want.LastTransitionTime = have.LastTransitionTime
	}
	err := c.patch(ctx, pod, want)
	switch {
	case err == nil:
		c.said.well(name.Namespace)
		return nil
	case apierrors.IsForbidden(err) && c.said.news(name.Namespace, err):
		klog.FromContext(ctx).Info("Pod conditions are refused; do the ClusterRole and the ValidatingAdmissionPolicy antrea-lite stand as shipped?", "pod", name, "err", err)
	case retryable(err):
		klog.FromContext(ctx).V(2).Info("A Pod condition cannot be written now", "pod", name, "err", err)
	default:
		klog.FromContext(ctx).Info("A Pod condition is not wanted", "pod", name, "err", err)
	}
	if retryable(err) {
		return err // a gate waits for it
	}
	return nil
}

func condition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == ConditionNetworkReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// want returns the condition that the Pod should have; not ok while that is not known.
func (c *Conditions) want(pod *corev1.Pod) (corev1.PodCondition, bool) {
	var newest []ifstore.Interface // of one sandbox
	for _, i := range c.ifaces(pod.Namespace, pod.Name) {
		if !same(pod, i.Pod) || i.State == ifstore.StateWithdrawing {
			continue
		}
		if len(newest) > 0 && newest[0].ContainerID != i.ContainerID {
			newest = newest[:0]
		}
		newest = append(newest, i)
	}
	if len(newest) == 0 {
		return corev1.PodCondition{}, false
	}
	cond := corev1.PodCondition{Type: ConditionNetworkReady, Status: corev1.ConditionTrue, Reason: string(podnet.NetworkReady), LastTransitionTime: metav1.Now()}
	ready := true
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range newest {
		if i.State == ifstore.StateReady {
			continue
		}
		ready = false
		if e, ok := c.late[i.Key]; ok {
			cond.Status, cond.Reason, cond.Message = corev1.ConditionFalse, string(e.Type), cut(e.Message, maxMessage)
			return cond, true
		}
	}
	return cond, ready
}

// patch writes the condition of that life of the Pod and nothing else.
func (c *Conditions) patch(ctx context.Context, pod *corev1.Pod, cond corev1.PodCondition) error {
	type object map[string]any
	body, err := json.Marshal(object{
		"metadata": object{"uid": pod.UID}, // another Pod of the name: refused
		"status": object{"conditions": []object{{
			"type": cond.Type, "status": cond.Status, "reason": cond.Reason, "message": cond.Message,
			"lastTransitionTime": cond.LastTransitionTime.UTC().Format(time.RFC3339),
		}}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	_, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}
