package k8s

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManyPodsAtOnce creates Pods on both nodes in one go, measures how long
// each takes to be Ready, and demands an answer from every one.
func TestManyPodsAtOnce(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeoutCause(w.ctx, 2*patience, errors.New("too slow"))
	defer cancel()
	began := time.Now()
	times, err := starter(w.namespace).AtOnce(ctx, options.pods)
	w.must(err)
	t.Logf("%d Pods at once with %s, created to Ready: p50 %s, p99 %s, last %s", len(times), options.network,
		times.Percentile(50).Round(time.Millisecond), times.Percentile(99).Round(time.Millisecond), times.Percentile(100).Round(time.Millisecond))
	w.allAnswer()
	t.Logf("all have answered both nodes %s after the first was created", time.Since(began).Round(time.Millisecond))
}

// allAnswer demands that every Pod of the namespace answers every node by each
// of its addresses, with its own name.
func (w *world) allAnswer() {
	w.t.Helper()
	list, err := w.Client().CoreV1().Pods(w.namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	var group sync.WaitGroup
	for _, n := range w.Nodes() {
		group.Go(func() {
			for i := range list.Items {
				p := pod{Pod: &list.Items[i]}
				for _, to := range p.addrs() {
					host, _, err := curl(w.ctx, n.NetNS(), netip.AddrPortFrom(to, httpPort))
					if err := orWrong(err, host, p.Name); err != nil {
						w.t.Errorf("%s to %s by %s: %v", n.Name, p.Name, family(to), err)
					}
				}
			}
		})
	}
	group.Wait()
}
