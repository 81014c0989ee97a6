package windows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/derive"
	"github.com/antrea-lite/podnet/podnet"
)

// HNS lets two endpoints have one name, and gives an address that another one
// holds either an error or no network at all. So what is in the way is looked
// for before anything is made.

// clear makes way for the plan's endpoint: it returns a left-over of the same
// interface to adopt, removes what else is ours and useless, and refuses, with
// its name, what is not ours or alive. A list that HNS does not give is an
// error: nothing may be made then.
func (l *Linker) clear(ctx context.Context, p plan, wantMAC ifstore.MAC, network Network) (adopt Endpoint, err error) {
	objects, err := l.guard.List(ctx, Query{Kind: Endpoints})
	if err != nil {
		return Endpoint{}, fmt.Errorf("look for left-over endpoints: %w", err)
	}
	var useless []Endpoint
	for _, e := range objects.Endpoints {
		if strings.EqualFold(e.Name, p.name) {
			keep, err := l.judgeNamesake(ctx, p, wantMAC, network, e)
			switch {
			case err != nil:
				return Endpoint{}, err
			case keep && adopt.ID.IsZero():
				adopt = e
			default:
				useless = append(useless, e)
			}
			continue
		}
		if e.Network != network.ID {
			continue // addresses of other networks are their own
		}
		if what := conflict(p, e); what != "" {
			if err := l.judgeHolder(ctx, p, e, what); err != nil {
				return Endpoint{}, err
			}
			useless = append(useless, e)
		}
	}
	for _, e := range useless {
		klog.FromContext(ctx).Info("Removing a left-over endpoint that is in the way of a new interface", "endpoint", e.String(), "interface", p.key.String())
		if err := l.remove(ctx, e); err != nil {
			return Endpoint{}, fmt.Errorf("remove left-over %v: %w", e, err)
		}
	}
	if !adopt.ID.IsZero() {
		klog.FromContext(ctx).Info("Adopting the endpoint of an earlier attempt", "endpoint", adopt.String(), "interface", p.key.String())
	}
	return adopt, nil
}

// conflict names what of the plan another endpoint holds; "": nothing.
func conflict(p plan, e Endpoint) string {
	for _, a := range p.addrs {
		if e.has(a.Addr()) {
			return "address " + a.Addr().String()
		}
	}
	if e.MAC == p.mac {
		return "MAC address " + p.mac.String()
	}
	return ""
}

// judgeNamesake tells whether an endpoint of the plan's name may be adopted; if
// not, without an error, it may be removed. The name follows from the container
// id, so an endpoint of that name on podnet's network is an earlier attempt's.
func (l *Linker) judgeNamesake(ctx context.Context, p plan, wantMAC ifstore.MAC, network Network, e Endpoint) (adopt bool, err error) {
	if l.isMade(p.name) {
		return false, fmt.Errorf("%w: interface %v is linked already, by %v; DEL it before it is added again", podnet.ErrPortExists, p.key, e)
	}
	if e.Network != network.ID {
		return false, fmt.Errorf("%w: name %q, wanted for %v, is taken by a stranger's %v on network %s; remove that or give this node another host interface prefix",
			podnet.ErrPortExists, p.name, p.key, e, e.Network)
	}
	if !e.Namespace.IsZero() && e.Namespace != p.namespace {
		gone, err := l.namespaceGone(ctx, e.Namespace)
		if err != nil {
			return false, err
		}
		if !gone {
			return false, fmt.Errorf("%w: name %q, wanted for %v in namespace %s, is taken by %v, and that namespace is alive; remove its container",
				podnet.ErrPortExists, p.name, p.key, p.namespace, e)
		}
		return false, nil
	}
	return !l.guard.leaving(e.ID) && e.Name == p.name && p.made(e, wantMAC) == nil && sameRoutes(e.Routes, p.routes), nil
}

// judgeHolder refuses an endpoint that holds something of the plan unless it is
// ours and nobody's any more.
func (l *Linker) judgeHolder(ctx context.Context, p plan, e Endpoint, what string) error {
	refusal := func(why string) error {
		return fmt.Errorf("%w: %s, wanted for %v, is held by %v, which %s", podnet.ErrPortExists, what, p.key, e, why)
	}
	if !l.marked(e) {
		return refusal("podnet did not make; remove it, or keep its addresses out of the Pod CIDR")
	}
	if l.isMade(e.Name) {
		return refusal("belongs to another interface")
	}
	gone, err := l.namespaceGone(ctx, e.Namespace)
	if err != nil {
		return err
	}
	if !gone {
		return refusal("is in a namespace that is alive; remove its container")
	}
	return nil
}

// marked reports whether an endpoint is podnet's, whatever interface it was
// for: HNS lets endpoints carry no mark, so the MAC address proves the name.
func (l *Linker) marked(e Endpoint) bool {
	return len(e.Name) == derive.MaxName && strings.HasPrefix(e.Name, l.cfg.HostPrefix) && e.MAC == derive.MACOfName(e.Name)
}

func sameRoutes(a, b []EndpointRoute) bool {
	order := func(a, b EndpointRoute) int {
		return strings.Compare(a.Dst.String()+">"+a.GW.String(), b.Dst.String()+">"+b.GW.String())
	}
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}
