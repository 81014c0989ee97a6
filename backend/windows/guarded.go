package windows

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/internal/join"
)

// List implements HNS. Callers that want all endpoints or all namespaces at the
// same moment share one list, which began after they asked.
func (g *guard) List(ctx context.Context, q Query) (Objects, error) {
	all := q.Name == "" && q.ID.IsZero()
	switch {
	case all && q.Kind == Endpoints:
		return g.endpoints.Do(ctx, q)
	case all && q.Kind == Namespaces:
		return g.namespaces.Do(ctx, q)
	}
	return g.list(ctx, q)
}

// listOnce answers a batch of whole lists of one kind.
func (g *guard) listOnce(ctx context.Context, batch []Query) []join.Result[Objects] {
	q := batch[0]
	for _, other := range batch {
		q.States = q.States || other.States
	}
	objects, err := g.list(ctx, q)
	results := make([]join.Result[Objects], len(batch))
	for i := range results {
		results[i] = join.Result[Objects]{Value: objects, Err: err}
	}
	return results
}

func (g *guard) list(ctx context.Context, q Query) (Objects, error) {
	what := "list " + q.Kind.String()
	if err := g.take(ctx, OpList, what); err != nil {
		return Objects{}, err
	}
	return run(ctx, g, OpList, what, func(ctx context.Context) (Objects, error) { return g.hns.List(ctx, q) }, nil)
}

// CreateNetwork implements HNS. A network whose create comes too late stays:
// the next look for it finds it.
func (g *guard) CreateNetwork(ctx context.Context, n Network) (Network, error) {
	what := fmt.Sprintf("create network %q", n.Name)
	if err := g.take(ctx, OpCreateNetwork, what); err != nil {
		return Network{}, err
	}
	return run(ctx, g, OpCreateNetwork, what, func(ctx context.Context) (Network, error) { return g.hns.CreateNetwork(ctx, n) }, nil)
}

// CreateEndpoint implements HNS. An endpoint that comes too late is deleted.
func (g *guard) CreateEndpoint(ctx context.Context, e Endpoint) (Endpoint, error) {
	what := fmt.Sprintf("create endpoint %q", e.Name)
	for {
		if err := g.settle(ctx, e.Name); err != nil {
			return Endpoint{}, err
		}
		if err := g.take(ctx, OpCreateEndpoint, what); err != nil {
			return Endpoint{}, err
		}
		if over := g.register(e.Name); over != nil {
			return g.create(ctx, e, what, over)
		}
		g.release(OpCreateEndpoint) // another was quicker
	}
}

// register claims the name for one create; nil: another has it. over ends it.
func (g *guard) register(name string) (over func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.creates[name] != nil {
		return nil
	}
	done := make(chan struct{})
	g.creates[name] = done
	return func() {
		g.mu.Lock()
		delete(g.creates, name)
		g.mu.Unlock()
		close(done)
	}
}

func (g *guard) create(ctx context.Context, e Endpoint, what string, over func()) (Endpoint, error) {
	return run(ctx, g, OpCreateEndpoint, what,
		func(ctx context.Context) (Endpoint, error) { return g.hns.CreateEndpoint(ctx, e) },
		func(ctx context.Context, made Endpoint, err error, left bool) {
			if left && err == nil {
				g.cleanUp(ctx, made)
			}
			over()
		})
}

// cleanUp deletes an endpoint that nobody waits for any more.
func (g *guard) cleanUp(ctx context.Context, e Endpoint) {
	ctx, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	if err := g.DeleteEndpoint(ctx, e.ID); err != nil && !isGone(err) {
		klog.FromContext(ctx).Error(err, "An endpoint that came too late could not be deleted; the next ADD or DEL of its container finds it by its name", "endpoint", e.String())
	}
}

// DeleteEndpoint implements HNS. A delete of the same endpoint that is under
// way is joined.
func (g *guard) DeleteEndpoint(ctx context.Context, id GUID) error {
	return g.join(ctx, OpDeleteEndpoint, id, "delete endpoint "+id.String(), func(ctx context.Context) error { return g.hns.DeleteEndpoint(ctx, id) })
}

// ModifyNamespace implements HNS. The same change that is under way is joined.
func (g *guard) ModifyNamespace(ctx context.Context, c NamespaceChange) error {
	op, what := OpAttach, fmt.Sprintf("attach endpoint %s to namespace %s", c.Endpoint, c.Namespace)
	if c.Detach {
		op, what = OpDetach, fmt.Sprintf("detach endpoint %s from namespace %s", c.Endpoint, c.Namespace)
	}
	return g.join(ctx, op, c, what, func(ctx context.Context) error { return g.hns.ModifyNamespace(ctx, c) })
}

// leaving reports whether a delete of an endpoint or its detach from any
// namespace is under way.
func (g *guard) leaving(endpoint GUID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.joined {
		change, ok := key.(NamespaceChange)
		if key == endpoint || ok && change.Detach && change.Endpoint == endpoint {
			return true
		}
	}
	return false
}
