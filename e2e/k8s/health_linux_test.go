package k8s

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// health notes what a disturbance of the network must not do: a Node that is not
// Ready, an endpoint that was ready and left its Service.
type health struct {
	world   *world
	cancel  context.CancelFunc
	watches sync.WaitGroup

	mu       sync.Mutex
	ready    map[string]map[string]bool // addresses that are ready, by EndpointSlice
	notReady map[string]bool            // Nodes
	harm     []string
}

// watchHealth watches all Nodes and the Services of the world until end.
func (w *world) watchHealth() *health {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	h := &health{world: w, cancel: cancel, ready: map[string]map[string]bool{}, notReady: map[string]bool{}}
	nodes, err := w.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	w.must(err)
	endpoints, err := w.Client().DiscoveryV1().EndpointSlices(w.namespace).Watch(ctx, metav1.ListOptions{})
	w.must(err)
	// Without a version a watch begins with all that there is.
	h.watches.Go(func() { h.follow(ctx, nodes, "Nodes", h.node) })
	h.watches.Go(func() { h.follow(ctx, endpoints, "EndpointSlices", h.slice) })
	w.t.Cleanup(func() { h.end() })
	return h
}

// end ends the watches and returns what was noted.
func (h *health) end() []string {
	h.cancel()
	h.watches.Wait()
	return h.harm
}

// unharmed ends the watches; the test fails when anything was noted.
func (h *health) unharmed() {
	h.world.t.Helper()
	for _, what := range h.end() {
		h.world.t.Error(what)
	}
}

func (h *health) follow(ctx context.Context, events watch.Interface, what string, look func(watch.Event)) {
	defer events.Stop()
	for e := range events.ResultChan() {
		if ctx.Err() != nil {
			return
		}
		look(e)
	}
	if ctx.Err() == nil {
		h.note("the watch of %s ended", what)
	}
}

func (h *health) node(e watch.Event) {
	n, ok := e.Object.(*corev1.Node)
	if !ok {
		h.note("watch of Nodes: %v", e.Object)
		return
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type != corev1.NodeReady {
			continue
		}
		bad := cond.Status != corev1.ConditionTrue
		h.mu.Lock()
		changed := h.notReady[n.Name] != bad
		h.notReady[n.Name] = bad
		h.mu.Unlock()
		if changed && bad {
			h.note("Node %s is not Ready: %s", n.Name, cond.Message)
		}
	}
}

func (h *health) slice(e watch.Event) {
	s, ok := e.Object.(*discoveryv1.EndpointSlice)
	if !ok {
		h.note("watch of EndpointSlices: %v", e.Object)
		return
	}
	now := map[string]bool{}
	if e.Type != watch.Deleted {
		for _, ep := range s.Endpoints {
			// Unknown counts as ready.
			if ep.Conditions.Ready == nil || *ep.Conditions.Ready {
				now[ep.Addresses[0]] = true
			}
		}
	}
	h.mu.Lock()
	before := h.ready[s.Name]
	h.ready[s.Name] = now
	h.mu.Unlock()
	for _, address := range slices.Sorted(maps.Keys(before)) {
		if !now[address] {
			h.note("endpoint %s of %s is not ready any more", address, s.Labels[discoveryv1.LabelServiceName])
		}
	}
}

func (h *health) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.harm = append(h.harm, fmt.Sprintf(format, args...))
}
