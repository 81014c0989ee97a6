package k8s

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestManyPodsAtOnce creates Pods on both nodes in one go, measures how long
// each takes to be Ready, and demands an answer from every one.
func TestManyPodsAtOnce(t *testing.T) {
	w := newWorld(t)
	events, err := w.Client().CoreV1().Pods(w.namespace).Watch(w.ctx, metav1.ListOptions{})
	w.must(err)
	defer events.Stop()
	created := map[string]time.Time{}
	for i := range options.pods {
		name := fmt.Sprint("p", i)
		created[name] = time.Now()
		_, err := w.Client().CoreV1().Pods(w.namespace).Create(w.ctx, testPod(w.namespace, name, w.Nodes()[i%len(w.Nodes())].Name), metav1.CreateOptions{})
		w.must(err)
	}
	ready := collectReady(t, events, created)
	t.Logf("%d Pods with %s, created to Ready: p50 %s, p99 %s, last %s", len(ready), options.network,
		percentile(ready, 50), percentile(ready, 99), ready[len(ready)-1])
	list, err := w.Client().CoreV1().Pods(w.namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, p := range list.Items {
		p := pod{Pod: &p}
		for _, to := range p.addrs() {
			host, _, err := curl(w.ctx, w.Nodes()[0].NetNS(), netip.AddrPortFrom(to, httpPort))
			if err := orWrong(err, host, p.Name); err != nil {
				t.Errorf("%s by %s: %v", p.Name, family(to), err)
			}
		}
	}
}

// collectReady reads events until every Pod is Ready; times in ascending order.
func collectReady(t *testing.T, events watch.Interface, created map[string]time.Time) []time.Duration {
	var took []time.Duration
	seen := map[string]bool{}
	limit := time.After(2 * patience)
	for len(took) < len(created) {
		select {
		case <-limit:
			t.Fatalf("%d of %d Pods are Ready after %s", len(took), len(created), 2*patience)
		case e, open := <-events.ResultChan():
			if !open {
				t.Fatal("the watch of Pods ended")
			}
			p, ok := e.Object.(*corev1.Pod)
			if !ok || seen[p.Name] || isReady(p) != nil {
				continue
			}
			seen[p.Name] = true
			took = append(took, time.Since(created[p.Name]).Round(time.Millisecond))
		}
	}
	slices.Sort(took)
	return took
}

// percentile of sorted values, by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}
