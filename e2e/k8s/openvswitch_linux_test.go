package k8s

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOpenVSwitchRestart: the userspace datapath forwards nothing without ovs-vswitchd,
// nor without ovsdb-server, whose lock ovs-vswitchd wants to hold while it runs its
// bridges. How long that takes is measured; traffic comes back by itself, and neither a
// Node nor an endpoint is given up.
func TestOpenVSwitchRestart(t *testing.T) {
	w := newAntreaLite(t)
	n1 := w.Nodes()[0]
	a, b, far := w.three()
	w.service("b", "b", nil)
	w.service("far", "far", nil)
	all := append(ways("within a node", a, b), ways("across nodes", a, far)...)
	before := w.states()
	health := w.watchHealth()
	for i, restart := range []struct {
		name       string
		containers int // that get successors, of all nodes
		do         func(*world)
	}{
		{"switch killed", 1, func(w *world) { w.must(n1.Kill(w.ctx, "ovs-vswitchd")) }},
		{"database killed", 1, func(w *world) { w.must(n1.Kill(w.ctx, "ovsdb-server")) }},
		{"switch and database killed on both nodes", 4, func(w *world) { w.killAll("ovs-vswitchd"); w.killAll("ovsdb-server") }},
		{"Pod deleted", 2, func(w *world) {
			w.kubectl("delete", "pod", "-n", metav1.NamespaceSystem, "-l", switchPods, "--field-selector=spec.nodeName="+n1.Name, "--wait=false")
		}},
	} {
		t.Run(restart.name, func(t *testing.T) {
			w := w.in(t)
			stop := w.load(all...)
			fresh := fmt.Sprint("fresh", i)
			w.renewed(switchPods, restart.containers, func() {
				restart.do(w)
				w.create(testPod(w.namespace, fresh, n1.Name))
			})
			f := w.ready(fresh, n1)
			for _, way := range append(all, ways("new", f, far)...) {
				w.reach(way)
			}
			for _, s := range stop() {
				if s.err != nil {
					t.Errorf("%s: %v", s.name, s.err)
				}
				t.Logf("%s: %d pings, %d lost, longest gap %s; %.1f MB by TCP", s.name, s.ping.Sent, s.ping.Lost,
					s.ping.LongestGap.Round(time.Millisecond), float64(s.tcp.Bytes)/1e6)
			}
			w.must(w.Client().CoreV1().Pods(w.namespace).Delete(w.ctx, fresh, metav1.DeleteOptions{}))
			w.lookAgain("ports and flows are those of before", before, "port", "flow")
		})
	}
	health.unharmed()
}
