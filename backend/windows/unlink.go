package windows

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
)

// recorded is what Link put into the record.
type recorded struct {
	endpoint, namespace, network GUID
}

// recordedOf reads the record. What cannot be read is as good as missing: the
// endpoint is found by its name then.
func recordedOf(iface ifstore.Interface) recorded {
	read := func(key string) GUID {
		g, err := ParseGUID(iface.Extra[key])
		if err != nil {
			return GUID{}
		}
		return g
	}
	r := recorded{endpoint: read(extraEndpoint), namespace: read(extraNamespace), network: read(extraNetwork)}
	if r.namespace.IsZero() {
		if ns, err := ParseNetNS(iface.NetNS); err == nil {
			r.namespace = ns.Namespace
		}
	}
	return r
}

// Unlink takes the endpoint out of its namespace and deletes it. What is gone,
// be it endpoint, namespace or network, counts as removed; a failed detach does
// not keep the endpoint from being deleted. When HNS does not answer in time the
// error wraps podnet.ErrTryAgain, the call goes on, and the next Unlink joins it.
func (l *Linker) Unlink(ctx context.Context, iface ifstore.Interface) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := recordedOf(iface)
	if r.endpoint.IsZero() {
		return l.unlinkNamed(ctx, iface.Key, iface.Name)
	}
	if err := l.remove(ctx, Endpoint{ID: r.endpoint, Namespace: r.namespace}); err != nil {
		return fmt.Errorf("remove endpoint %q of %v: %w", iface.Name, iface.Key, err)
	}
	l.forget(iface.Name)
	return nil
}

// UnlinkOrphan removes the endpoint of a key that is in no record, whose name
// derives from it. It implements podnet.OrphanUnlinker. Nothing there: nil.
func (l *Linker) UnlinkOrphan(ctx context.Context, key ifstore.Key) error {
	return l.unlinkNamed(ctx, key, l.HostName(key))
}

func (l *Linker) unlinkNamed(ctx context.Context, key ifstore.Key, name string) error {
	found, err := l.endpointsNamed(ctx, name, false)
	if err != nil {
		return fmt.Errorf("look for endpoint %q of %v: %w", name, key, err)
	}
	if len(found) == 0 {
		l.forget(name)
		return nil
	}
	// Asked anew: an id that is out of date would make all of them strangers.
	objects, err := l.guard.List(ctx, Query{Kind: Networks, Name: l.cfg.Network.Name})
	if err != nil {
		return fmt.Errorf("look for HNS network %q: %w", l.cfg.Network.Name, err)
	}
	for _, e := range found {
		if !strings.EqualFold(e.Name, name) || !isOn(e, objects.Networks) {
			klog.FromContext(ctx).Info("Left an endpoint alone: it has the name of a removed one and is on another network", "endpoint", e.String(), "interface", key.String())
			continue
		}
		if err := l.remove(ctx, e); err != nil {
			return fmt.Errorf("remove endpoint %q of %v: %w", name, key, err)
		}
	}
	l.forget(name)
	return nil
}

func isOn(e Endpoint, networks []Network) bool {
	for _, n := range networks {
		if e.Network == n.ID {
			return true
		}
	}
	return false
}
