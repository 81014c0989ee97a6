package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// networkReady is the condition that a Pod may name as a readiness gate.
const networkReady corev1.PodConditionType = "podnet.antrea-lite.io/NetworkReady"

// TestServiceOutwaitsAFrozenSwitch is the founding bug in a cluster: Open vSwitch
// stands still when a Pod starts. The container runs, the Pod is told why it has no
// network, and no Service sends it a request before it has one. Then it gets it,
// and nobody restarts anything.
func TestServiceOutwaitsAFrozenSwitch(t *testing.T) {
	w := newAntreaLite(t)
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	w.configure(n1, map[string]any{"portReadiness": "async", "notReadyAfter": "3s"})
	steady := testPod(w.namespace, "steady", n2.Name)
	steady.Labels["app"] = "web"
	w.create(steady)
	w.ready("steady", n2)
	client := w.start("client", n2)
	svc := w.service("web", "web", nil)
	web := netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIP), 80)
	w.until("the Service answers", func() error { _, _, err := curl(w.ctx, client.ns, web); return err })
	running := w.containers()

	w.freeze(n1)
	began := time.Now()
	late := testPod(w.namespace, "late", n1.Name)
	late.Labels["app"] = "web"
	late.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: networkReady}}
	late.Spec.Containers[0].ReadinessProbe = nil // the gate alone holds it back
	w.create(late)
	w.until("its container runs", func() error { return conditionIs(w.get("late"), corev1.ContainersReady, corev1.ConditionTrue) })
	t.Logf("the container runs %s after the Pod was created, with Open vSwitch frozen", since(began))
	w.until("the Pod is told", func() error { return conditionIs(w.get("late"), networkReady, corev1.ConditionFalse) })
	t.Logf("told after %s", since(began))
	told := condition(w.get("late"), networkReady)
	if cause := "no OpenFlow port number yet"; told.Reason != "NetworkNotReady" || !strings.Contains(told.Message, cause) {
		t.Errorf("the condition does not name the cause %q: %+v", cause, told)
	}
	w.hasEvent("late", corev1.EventTypeWarning, "NetworkNotReady", told.Message)
	for range 50 {
		host, _, err := curl(w.ctx, client.ns, web)
		w.must(orWrong(err, host, "steady"))
	}
	if listed, ready := w.endpoint("web", "late"); !listed || ready {
		t.Errorf("while the Pod waits: in the Service's endpoints %v, ready %v", listed, ready)
	}
	w.must(conditionIs(w.get("late"), corev1.PodReady, corev1.ConditionFalse))

	thawed := time.Now()
	w.thaw(n1)
	answers := map[string]int{}
	w.until("the Service sends requests to the Pod", func() error {
		host, _, err := curl(w.ctx, client.ns, web)
		if err != nil {
			w.t.Errorf("a request is lost: %v", err)
		}
		if answers[host]++; host == "late" {
			return nil
		}
		return fmt.Errorf("answers by Pod: %v", answers)
	})
	t.Logf("the Service sends requests to the Pod %s after Open vSwitch goes on", since(thawed))
	// Nothing takes the condition back in between, so it was so when the request was sent.
	for _, kind := range []corev1.PodConditionType{networkReady, corev1.PodReady} {
		if err := conditionIs(w.get("late"), kind, corev1.ConditionTrue); err != nil {
			t.Errorf("a request came to a Pod that is not ready: %v", err)
		}
	}
	w.hasEvent("late", corev1.EventTypeNormal, "NetworkReady", "")
	if p := w.get("late"); restarts(p) != 0 {
		t.Errorf("the Pod's container was restarted %d times", restarts(p))
	}
	if now := w.containers(); !maps.Equal(now, running) {
		t.Errorf("something was restarted: containers before %v, now %v", running, now)
	}
}

// needsAntreaLite leaves a scenario out that is about what only antrea-lite has.
func needsAntreaLite(t *testing.T) {
	t.Helper()
	if options.network != "antrea-lite" {
		t.Skipf("the cluster's network is %s", options.network)
	}
}

// newAntreaLite is newWorld for a scenario about what only antrea-lite has.
func newAntreaLite(t *testing.T) *world {
	t.Helper()
	needsAntreaLite(t)
	return newWorld(t)
}

// configure gives the agent of a node other settings, as an operator would: in the
// ConfigMap, which an agent reads when it starts. At the test's end they are put back.
func (w *world) configure(n *cluster.Node, settings map[string]any) {
	w.t.Helper()
	object, err := w.Client().CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(w.ctx, "antrea-lite", metav1.GetOptions{})
	w.must(err)
	const file = "agent.yaml"
	shipped := object.Data[file]
	write := func(content string) {
		patch, err := json.Marshal(corev1.ConfigMap{Data: map[string]string{file: content}})
		w.must(err)
		w.kubectl("patch", "configmap", "-n", metav1.NamespaceSystem, "antrea-lite", "--type=merge", "--patch="+string(patch))
		w.replaceAgent(n)
	}
	w.t.Cleanup(func() {
		w.ctx = context.Background() // the test's has ended
		write(shipped)
	})
	all := map[string]any{}
	w.must(yaml.Unmarshal([]byte(shipped), &all))
	for key, value := range settings {
		all[key] = value
	}
	content, err := yaml.Marshal(all)
	w.must(err)
	write(string(content))
}

// agentOf returns the Pod of a node's agent.
func (w *world) agentOf(n *cluster.Node) (corev1.Pod, error) {
	list, err := w.Client().CoreV1().Pods(metav1.NamespaceSystem).List(w.ctx,
		metav1.ListOptions{LabelSelector: "app=antrea-lite", FieldSelector: "spec.nodeName=" + n.Name})
	if err != nil {
		return corev1.Pod{}, err
	}
	i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp == nil && p.Spec.ServiceAccountName == "antrea-lite"
	})
	if i < 0 {
		return corev1.Pod{}, fmt.Errorf("%s has no agent", n.Name)
	}
	return list.Items[i], nil
}

// replaceAgent deletes the Pod of a node's agent and waits for the next.
func (w *world) replaceAgent(n *cluster.Node) {
	w.t.Helper()
	old, err := w.agentOf(n)
	w.must(err)
	w.must(w.Client().CoreV1().Pods(old.Namespace).Delete(w.ctx, old.Name, metav1.DeleteOptions{}))
	w.until("another agent is Ready", func() error {
		p, err := w.agentOf(n)
		if err == nil && p.UID == old.UID {
			err = errors.New("the old one is there still")
		}
		if err != nil {
			return err
		}
		return isReady(&p)
	})
}

// containers are those of antrea-lite and how often each was restarted.
func (w *world) containers() map[string]int32 {
	w.t.Helper()
	list, err := w.Client().CoreV1().Pods(metav1.NamespaceSystem).List(w.ctx, metav1.ListOptions{LabelSelector: "app=antrea-lite"})
	w.must(err)
	found := map[string]int32{}
	for _, p := range list.Items {
		for _, s := range p.Status.ContainerStatuses {
			found[p.Name+"/"+s.ContainerID] = s.RestartCount
		}
	}
	return found
}

// freeze stops the process of a node's Open vSwitch, until thaw or the test's end.
func (w *world) freeze(n *cluster.Node) {
	w.t.Helper()
	w.must(n.Signal(w.ctx, "STOP", "ovs-vswitchd"))
	w.t.Cleanup(func() {
		if err := n.Signal(context.Background(), "CONT", "ovs-vswitchd"); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) thaw(n *cluster.Node) {
	w.t.Helper()
	w.must(n.Signal(w.ctx, "CONT", "ovs-vswitchd"))
}

func (w *world) kubectl(args ...string) {
	w.t.Helper()
	_, err := w.Kubectl(w.ctx, args...)
	w.must(err)
}

// get returns a Pod of the test.
func (w *world) get(name string) *corev1.Pod {
	w.t.Helper()
	p, err := w.Client().CoreV1().Pods(w.namespace).Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	return p
}

// condition of a Pod; a zero value when it has none of that type.
func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func conditionIs(p *corev1.Pod, kind corev1.PodConditionType, want corev1.ConditionStatus) error {
	if c := condition(p, kind); c.Status != want {
		return fmt.Errorf("Pod %s: condition %s is %q, not %s: %s %s", p.Name, kind, c.Status, want, c.Reason, c.Message)
	}
	return nil
}

// hasEvent waits until kubectl shows an event of a Pod.
func (w *world) hasEvent(pod, kind, reason, text string) {
	w.t.Helper()
	w.until("event "+reason, func() error {
		out, err := w.Kubectl(w.ctx, "get", "events", "-n", w.namespace,
			"--field-selector=involvedObject.name="+pod+",reason="+reason, "-o", "jsonpath={range .items[*]}{.type} {.message}{'\\n'}{end}")
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, kind+" ") && strings.Contains(line, text) {
				return nil
			}
		}
		return fmt.Errorf("events:\n%s", out)
	})
}

// endpoint tells whether a Pod is an endpoint of a Service, and a ready one.
func (w *world) endpoint(service, pod string) (listed, ready bool) {
	w.t.Helper()
	list, err := w.Client().DiscoveryV1().EndpointSlices(w.namespace).List(w.ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	w.must(err)
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil && e.TargetRef.Name == pod {
				listed = true
				ready = ready || e.Conditions.Ready != nil && *e.Conditions.Ready
			}
		}
	}
	return listed, ready
}

func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }
