package k8s

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The parts of the shipped manifest: labels of their Pods.
const (
	agentPods  = "app=antrea-lite,component=agent"
	switchPods = "app=antrea-lite,component=openvswitch"
)

// part lists the containers, by id, of a part of the manifest; the error says which
// of its Pods is not Ready.
func (w *world) part(labels string) (ids map[string]bool, err error) {
	list, err := w.Client().CoreV1().Pods(metav1.NamespaceSystem).List(w.ctx, metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		return nil, err
	}
	ids = map[string]bool{}
	if len(list.Items) != len(w.Nodes()) {
		err = fmt.Errorf("%s has %d Pods", labels, len(list.Items))
	}
	for _, p := range list.Items {
		err = errors.Join(err, isReady(&p))
		for _, s := range p.Status.ContainerStatuses {
			ids[s.ContainerID] = true
		}
	}
	return ids, err
}

// renewed does something and waits until as many containers of a part as it was said
// to end have successors, and all are Ready.
func (w *world) renewed(labels string, containers int, do func()) {
	w.t.Helper()
	before, err := w.part(labels)
	w.must(err)
	do()
	w.until(labels+" runs anew", func() error {
		now, err := w.part(labels)
		fresh := 0
		for id := range now {
			if !before[id] {
				fresh++
			}
		}
		if fresh != containers {
			err = errors.Join(err, fmt.Errorf("%d containers are new, not %d", fresh, containers))
		}
		return err
	})
}

// killAll kills the processes of a name on every node.
func (w *world) killAll(comm string) {
	w.t.Helper()
	for _, n := range w.Nodes() {
		w.must(n.Kill(w.ctx, comm))
	}
}

// TestAgentRestart: whatever ends an agent, no packet is lost, no Node and no
// endpoint is given up, and Pods that were made meanwhile start.
func TestAgentRestart(t *testing.T) {
	w := newAntreaLite(t)
	a, b, far := w.three()
	w.service("b", "b", nil)
	w.service("far", "far", nil)
	health := w.watchHealth()
	var meanwhile []string
	for i, restart := range []struct {
		name string
		do   func(*world)
	}{
		{"killed", func(w *world) { w.killAll("antrea-lite") }},
		{"its Pods deleted", func(w *world) {
			w.kubectl("delete", "pod", "-n", metav1.NamespaceSystem, "-l", agentPods, "--wait=false")
		}},
		{"rolled out", func(w *world) { w.kubectl("rollout", "restart", "-n", metav1.NamespaceSystem, "daemonset/antrea-lite") }},
	} {
		t.Run(restart.name, func(t *testing.T) {
			w := w.in(t)
			stop := w.load(append(ways("within a node", a, b), ways("across nodes", far, b)...)...)
			w.renewed(agentPods, len(w.Nodes()), func() {
				restart.do(w)
				name := fmt.Sprint("meanwhile", i)
				w.create(testPod(w.namespace, name, w.Nodes()[i%2].Name))
				meanwhile = append(meanwhile, name)
			})
			w.lossless(stop)
		})
	}
	// The kubelet lets some time pass after a failed ADD: they are waited for together.
	for i, name := range meanwhile {
		for _, way := range ways("old to new", a, w.ready(name, w.Nodes()[i%2])) {
			w.reach(way)
		}
	}
	health.unharmed()
}

// TestSecondAgent: the bridge has one agent.
func TestSecondAgent(t *testing.T) {
	needsAntreaLite(t)
	w := newQuietWorld(t)
	before, err := w.part(agentPods)
	w.must(err)
	list, err := w.Client().CoreV1().Pods(metav1.NamespaceSystem).List(w.ctx, metav1.ListOptions{LabelSelector: agentPods})
	w.must(err)
	first := list.Items[0]
	pid := strings.TrimSpace(w.inAgent(first, "pidof", "antrea-lite"))
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	out, err := w.Kubectl(ctx, "exec", "-n", first.Namespace, first.Name, "--", "antrea-lite", "agent",
		"--config=/etc/antrea-lite/agent.yaml", "--node-name="+first.Spec.NodeName, "--metrics-address=")
	if err == nil {
		t.Fatalf("a second agent ended well:\n%s", out)
	}
	for _, want := range []string{"br-int", "(pid " + pid + ")"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the second agent does not name %q:\n%v", want, err)
		}
	}
	t.Logf("%v", err)
	if after, err := w.part(agentPods); err != nil || !maps.Equal(after, before) {
		t.Errorf("the first agents' containers are %v, before %v: %v", after, before, err)
	}
	w.start("later", w.Nodes()[0])
}

// inAgent runs a command in an agent's container.
func (w *world) inAgent(p corev1.Pod, args ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(w.ctx, append([]string{"exec", "-n", p.Namespace, p.Name, "--"}, args...)...)
	w.must(err)
	return out
}
