package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
	"github.com/antrea-lite/podnet/e2e/k8s/workload"
	"github.com/antrea-lite/podnet/e2e/lab"
)

// world is a namespace in the shared cluster. At the test's end it is removed
// with all that is in it, and the nodes have to look as before.
type world struct {
	*cluster.Cluster
	t         *testing.T
	ctx       context.Context
	namespace string
}

// newWorld makes a namespace for a test that runs alone.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: shared, t: t, ctx: t.Context()}
	before := w.states()
	w.makeNamespace(func() { w.lookAgain("the nodes look as before", before) })
	return w
}

// makeNamespace makes the world's namespace. At the test's end it is removed and gone
// called, which waits for what was in it.
func (w *world) makeNamespace(gone func()) {
	w.t.Helper()
	// Named anew each time: one of before may be ending still.
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(w.t.Name()))
	ns, err := w.Client().CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	w.must(err)
	w.namespace = ns.Name
	w.t.Cleanup(func() {
		// The test's context has ended.
		w.ctx = context.Background()
		if w.t.Failed() {
			w.describe()
		}
		w.must(w.Client().CoreV1().Namespaces().Delete(w.ctx, w.namespace, metav1.DeleteOptions{}))
		// The namespace's own end is not waited for: the controller manager takes its time.
		gone()
	})
	w.until("the namespace has its ServiceAccount", func() error {
		_, err := w.Client().CoreV1().ServiceAccounts(w.namespace).Get(w.ctx, "default", metav1.GetOptions{})
		return err
	})
}

// in is the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.t, sub.ctx = t, t.Context()
	return &sub
}

// describe logs what may tell why a test failed.
func (w *world) describe() {
	for _, args := range [][]string{
		{"get", "pods", "--all-namespaces", "-o", "wide"},
		{"get", "events", "-n", w.namespace, "--sort-by=.lastTimestamp"},
	} {
		out, err := w.Kubectl(w.ctx, args...)
		w.t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// states are the nodes' states, as soon as all can be seen: Open vSwitch may still be
// coming back from what a scenario did to it.
func (w *world) states() (all []lab.Listing) {
	w.t.Helper()
	w.until("the nodes can be looked at", func() (err error) {
		all, err = w.look()
		return err
	})
	return all
}

func (w *world) look() ([]lab.Listing, error) {
	var all []lab.Listing
	for _, n := range w.Nodes() {
		s, err := w.State(w.ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// lookAgain waits until what is on the nodes, or these kinds of it, is as before.
func (w *world) lookAgain(what string, before []lab.Listing, kinds ...string) {
	w.t.Helper()
	only := func(l lab.Listing) lab.Listing {
		if len(kinds) == 0 {
			return l
		}
		some := lab.Listing{}
		for _, kind := range kinds {
			some[kind] = l[kind]
		}
		return some
	}
	w.until(what, func() error {
		now, err := w.look()
		for i := range now {
			if diff := only(now[i]).Diff(only(before[i])); diff != "" {
				err = errors.Join(err, fmt.Errorf("%s differs:\n%s", w.Nodes()[i].Name, diff))
			}
		}
		return err
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// until waits for a condition; the test fails when it does not come.
func (w *world) until(what string, check func() error) {
	w.t.Helper()
	w.within(patience, what, check)
}

func (w *world) within(limit time.Duration, what string, check func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeoutCause(w.ctx, limit, fmt.Errorf("not within %s: %s", limit, what))
	defer cancel()
	w.must(lab.Every(ctx, 100*time.Millisecond, check))
}

// apply gives the cluster a manifest of the tree.
func (w *world) apply(manifest string) {
	w.t.Helper()
	path := filepath.Join(options.root, manifest)
	_, err := w.Kubectl(w.ctx, "apply", "-f", path)
	w.must(err)
	w.t.Cleanup(func() {
		_, err := w.Kubectl(context.Background(), "delete", "--wait=true", "-f", path)
		if err != nil {
			w.t.Error(err)
		}
	})
}

// pod is a Pod that is Ready.
type pod struct {
	*corev1.Pod
	node *cluster.Node
	ns   string // path of the network namespace
}

// testPod is a Pod that runs testpod's servers on a node.
func testPod(namespace, name, node string) *corev1.Pod { return workload.Pod(namespace, name, node) }

// create makes a Pod and does not wait for it.
func (w *world) create(p *corev1.Pod) {
	w.t.Helper()
	_, err := w.Client().CoreV1().Pods(w.namespace).Create(w.ctx, p, metav1.CreateOptions{})
	w.must(err)
}

// start makes a Pod on a node and waits until it is Ready.
func (w *world) start(name string, node *cluster.Node) pod {
	w.t.Helper()
	w.create(testPod(w.namespace, name, node.Name))
	return w.ready(name, node)
}

// pair makes the Pod a on the first node and b on the second.
func (w *world) pair() (a, b pod) {
	w.t.Helper()
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	w.create(testPod(w.namespace, "a", n1.Name))
	w.create(testPod(w.namespace, "b", n2.Name))
	return w.ready("a", n1), w.ready("b", n2)
}

// three makes the Pods a and b on the first node and far on the second.
func (w *world) three() (a, b, far pod) {
	w.t.Helper()
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	w.create(testPod(w.namespace, "a", n1.Name))
	w.create(testPod(w.namespace, "b", n1.Name))
	w.create(testPod(w.namespace, "far", n2.Name))
	return w.ready("a", n1), w.ready("b", n1), w.ready("far", n2)
}

// ready waits until a Pod is Ready.
func (w *world) ready(name string, node *cluster.Node) pod {
	w.t.Helper()
	p := pod{node: node}
	w.until("Pod "+name+" is Ready", func() (err error) {
		p.Pod, err = w.Client().CoreV1().Pods(w.namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return isReady(p.Pod)
	})
	var err error
	p.ns, err = node.PodNetNS(w.ctx, string(p.UID))
	w.must(err)
	return p
}

func isReady(p *corev1.Pod) error { return workload.Ready(p) }

// addrs are the Pod's addresses, IPv4 first.
func (p pod) addrs() []netip.Addr {
	var list []netip.Addr
	for _, ip := range p.Status.PodIPs {
		// The API server accepts valid addresses only.
		list = append(list, netip.MustParseAddr(ip.IP))
	}
	return list
}

// at are the Pod's endpoints for the instruments of package lab.
func (p pod) at() []lab.Endpoint {
	var list []lab.Endpoint
	for _, a := range p.addrs() {
		list = append(list, lab.Endpoint{NS: p.ns, Addr: a})
	}
	return list
}

// exec runs a command in a Pod through API server and kubelet.
func (w *world) exec(p pod, args ...string) (string, error) {
	return w.Kubectl(w.ctx, append([]string{"exec", "-n", w.namespace, p.Name, "--"}, args...)...)
}
