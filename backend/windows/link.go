package windows

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Keys of Link.Extra, which podnet keeps in the external_ids of the port.
const (
	extraEndpoint  = "hns-endpoint"
	extraNamespace = "hns-namespace"
	extraNetwork   = "hns-network"
)

// Link makes the endpoint of req and attaches it to the sandbox's namespace. The
// host interface appears later, when the container has started. On error
// nothing is left behind; what HNS does not let go of now goes on in the
// background and is found by its name at the next Link or UnlinkOrphan.
//
// Errors that repeating cannot cure wrap podnet.ErrBadRequest; a name or an
// address that a stranger or a living interface of the same key holds,
// podnet.ErrPortExists.
func (l *Linker) Link(ctx context.Context, req podnet.Request) (podnet.Link, error) {
	p, err := l.newPlan(req)
	if err != nil {
		return podnet.Link{}, err
	}
	if ctx.Err() != nil {
		return podnet.Link{}, context.Cause(ctx)
	}
	if err := l.guard.settle(ctx, p.name); err != nil {
		return podnet.Link{}, err
	}
	network, err := l.resolve(ctx)
	if err != nil {
		return podnet.Link{}, err
	}
	e, err := l.obtain(ctx, p, req.MAC, network)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = l.attach(ctx, p, e)
	}
	if err != nil {
		return podnet.Link{}, l.rollBack(ctx, p, e, err)
	}
	l.setMade(p.name)
	return podnet.Link{Name: p.name, MAC: e.MAC, MTU: p.mtu, Extra: map[string]string{
		extraEndpoint:  e.ID.String(),
		extraNamespace: p.namespace.String(),
		extraNetwork:   e.Network.String(),
	}}, nil
}

// obtain returns an endpoint for the plan: a left-over of an earlier attempt or
// a new one. An endpoint that comes with an error has to be removed again.
func (l *Linker) obtain(ctx context.Context, p plan, wantMAC ifstore.MAC, network Network) (Endpoint, error) {
	left, err := l.clear(ctx, p, wantMAC, network)
	if err != nil || !left.ID.IsZero() {
		return left, err
	}
	e, err := l.guard.CreateEndpoint(ctx, p.endpoint(network.ID))
	if isGone(err) {
		again, resolveErr := l.lost(ctx, network)
		if resolveErr != nil {
			return Endpoint{}, resolveErr
		}
		network = again
		e, err = l.guard.CreateEndpoint(ctx, p.endpoint(network.ID))
	}
	switch {
	case isGone(err):
		return Endpoint{}, fmt.Errorf("%w: %w", podnet.ErrTryAgain, err)
	case errors.Is(err, ErrTaken):
		return Endpoint{}, fmt.Errorf("%w: %w; see `Get-HnsEndpoint` for who has address %v", podnet.ErrPortExists, err, p.addrs)
	case err != nil:
		return Endpoint{}, err
	}
	if err := p.made(e, wantMAC); err != nil {
		return e, fmt.Errorf("HNS made another endpoint than it was asked for on network %q: %w", network.Name, err)
	}
	return e, nil
}

// attach puts the endpoint into the sandbox's namespace.
func (l *Linker) attach(ctx context.Context, p plan, e Endpoint) error {
	if e.Namespace == p.namespace {
		return nil // adopted with it
	}
	err := l.guard.ModifyNamespace(ctx, NamespaceChange{Namespace: p.namespace, Endpoint: e.ID})
	if errors.Is(err, ErrAttached) {
		return nil
	}
	if isGone(err) {
		return fmt.Errorf("the sandbox's namespace %s or its endpoint vanished: %w", p.namespace, err)
	}
	return err
}

// rollBack removes what a failed Link made, by the id it got at its creation.
// The caller's context is usually the reason for the failure.
func (l *Linker) rollBack(ctx context.Context, p plan, e Endpoint, cause error) error {
	if e.ID.IsZero() {
		return cause
	}
	e.Namespace = p.namespace // also when the attach failed: its outcome may be unknown
	// Detach and delete wait for HNS one after the other.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*l.cfg.CallTimeout)
	defer cancel()
	if err := l.remove(ctx, e); err != nil {
		return fmt.Errorf("%w; its endpoint could not be removed: %w", cause, err)
	}
	return cause
}

// remove takes an endpoint out of its namespace and deletes it. The delete is
// tried whatever becomes of the detach, and decides.
func (l *Linker) remove(ctx context.Context, e Endpoint) error {
	var detachErr error
	if !e.Namespace.IsZero() {
		detachErr = l.guard.ModifyNamespace(ctx, NamespaceChange{Namespace: e.Namespace, Endpoint: e.ID, Detach: true})
		if isGone(detachErr) {
			detachErr = nil
		}
	}
	err := l.guard.DeleteEndpoint(ctx, e.ID)
	switch {
	case err != nil && !isGone(err):
		return differences{detachErr, err}.err()
	case detachErr != nil:
		klog.FromContext(ctx).Info("An endpoint was deleted that could not be detached first", "endpoint", e.ID.String(), "namespace", e.Namespace.String(), "err", detachErr)
	}
	return nil
}
