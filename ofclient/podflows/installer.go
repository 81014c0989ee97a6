package podflows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

// Config describes an Installer. Sender is needed, normally an
// *ofclient.Client whose Config.Replay calls Installer.Replay.
type Config struct {
	Sender ofclient.Sender
	Node   Node
}

// Installer keeps the flows on the switch. It implements podnet.Flows and
// podnet.FlowChecker. All methods may be called concurrently.
type Installer struct {
	sender ofclient.Sender
	turn   chan struct{} // held by the one SetNode that may run

	mu       sync.Mutex // held for moments, never while the switch is asked
	round    uint16     // of the last replay; 0 before the first
	node     Node
	standing map[ofp.FlowKey]ofp.FlowMod // node flows that may be on the switch
	flush    flushSupport
	noND     bool // the datapath cannot make ND answers
}

var (
	_ podnet.Flows       = (*Installer)(nil)
	_ podnet.FlowChecker = (*Installer)(nil)
)

// New returns an Installer. It sends nothing: Replay does, on every session.
func New(cfg Config) (*Installer, error) {
	if cfg.Sender == nil {
		return nil, errors.New("podflows: Config.Sender is nil: use an *ofclient.Client")
	}
	node, err := cfg.Node.validate()
	if err != nil {
		return nil, fmt.Errorf("podflows: %w", err)
	}
	return &Installer{sender: cfg.Sender, turn: make(chan struct{}, 1), node: node, standing: map[ofp.FlowKey]ofp.FlowMod{}}, nil
}

// Flows builds the flows of an interface. It sends nothing. It fails for a
// number outside 1..0xfeff (ErrNoNumber), and for a MAC, VLAN or address that
// no interface can have (ErrBadRequest).
func (i *Installer) Flows(iface ifstore.Interface) ([]ofp.FlowMod, error) {
	return ifaceFlows(iface, i.currentRound())
}

// NodeFlows builds the flows that belong to no interface.
func (i *Installer) NodeFlows() []ofp.FlowMod {
	i.mu.Lock()
	defer i.mu.Unlock()
	mods, answers := i.nodeParts()
	return append(mods, answers...)
}

// nodeParts builds the node's flows for the present round, those that the
// datapath may refuse apart. The lock is held.
func (i *Installer) nodeParts() (mods, answers []ofp.FlowMod) {
	mods = nodeFlows(i.node, i.round)
	if !i.noND {
		answers = nodeNDAnswers(i.node, i.round)
	}
	return mods, answers
}

// applyNode sends the node's flows. It returns those that the switch took.
func (i *Installer) applyNode(ctx context.Context, sender ofclient.Sender, mods, answers []ofp.FlowMod) ([]ofp.FlowMod, error) {
	groups := []ofclient.Group{{Name: "the node", Mods: mods}}
	if len(answers) > 0 {
		groups = append(groups, ofclient.Group{Name: "the node's ND answers", Mods: answers})
	}
	errs := sender.Apply(ctx, groups)
	if errs[0] != nil || len(errs) == 1 || errs[1] == nil {
		return append(mods, answers...), errors.Join(errs...)
	}
	refused, ok := errors.AsType[*ofclient.FlowError](errs[1])
	if !ok {
		return nil, errs[1]
	}
	i.mu.Lock()
	i.noND = true
	i.mu.Unlock()
	klog.FromContext(ctx).Info("The datapath cannot answer neighbour solicitations (the kernel's cannot); those for addresses behind the gateway go to the host",
		"answer", refused.Cause)
	return mods, nil
}

func (i *Installer) currentRound() uint16 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.round
}

// Install writes the flows of each interface, whole or not at all, one result
// each. Repeating it changes nothing.
func (i *Installer) Install(ctx context.Context, ifaces []ifstore.Interface) []error {
	round := i.currentRound()
	return i.apply(ctx, ifaces, func(iface ifstore.Interface) ([]ofp.FlowMod, error) {
		return i.podFlows(iface, round)
	})
}

// podFlows builds the flows of an interface. It refuses an address of the
// gateway in the gateway's network: the guard would let the Pod announce it,
// and all others would send to the Pod what is for the world.
func (i *Installer) podFlows(iface ifstore.Interface, round uint16) ([]ofp.FlowMod, error) {
	i.mu.Lock()
	gateway := i.node.Gateway
	i.mu.Unlock()
	for _, a := range iface.IPs() {
		if iface.VLAN == 0 && gateway.OFPort != 0 && slices.Contains(gateway.Addrs, a) {
			return nil, fmt.Errorf("flows of interface %s (port %q): address %s: %w: it is the gateway's: give the interface another",
				nameOf(iface), iface.Name, a, podnet.ErrBadRequest)
		}
	}
	return ifaceFlows(iface, round)
}

// Replace moves an interface from the number of one record to that of another
// in one bundle: what only the old one had goes, the rest is written again.
func (i *Installer) Replace(ctx context.Context, old, new ifstore.Interface) error {
	round := i.currentRound()
	return i.apply(ctx, []ifstore.Interface{new}, func(new ifstore.Interface) ([]ofp.FlowMod, error) {
		mods, err := i.podFlows(new, round)
		if err != nil {
			return nil, err
		}
		stays := byKey(mods)
		var gone []ofp.FlowMod
		for _, del := range deletions(old) {
			if _, ok := stays[del.Key()]; !ok {
				gone = append(gone, del)
			}
		}
		return append(gone, mods...), nil
	})[0]
}

// Uninstall deletes the flows of each interface and then forgets the
// connections of its addresses, so that whoever gets an address next does not
// inherit them (fact 37). What is not there counts as deleted.
func (i *Installer) Uninstall(ctx context.Context, ifaces []ifstore.Interface) []error {
	errs := i.apply(ctx, ifaces, func(iface ifstore.Interface) ([]ofp.FlowMod, error) {
		return deletions(iface), nil
	})
	var gone []ifstore.Interface
	for n, iface := range ifaces {
		if errs[n] == nil {
			gone = append(gone, iface)
		}
	}
	if err := i.flushConnections(ctx, gone); err != nil {
		for n := range errs {
			if errs[n] == nil {
				errs[n] = err
			}
		}
	}
	return errs
}

// apply sends one group for each interface.
func (i *Installer) apply(ctx context.Context, ifaces []ifstore.Interface, build func(ifstore.Interface) ([]ofp.FlowMod, error)) []error {
	errs := make([]error, len(ifaces))
	var groups []ofclient.Group
	var index []int
	for n, iface := range ifaces {
		mods, err := build(iface)
		switch {
		case err != nil:
			errs[n] = err
		case len(mods) > 0:
			groups = append(groups, ofclient.Group{Name: nameOf(iface), Mods: mods})
			index = append(index, n)
		}
	}
	if len(groups) == 0 {
		return errs
	}
	for n, err := range i.sender.Apply(ctx, groups) {
		errs[index[n]] = err
	}
	return errs
}

// deletions builds one strict delete for every flow of an interface. The cookie
// filter spares the flow of another interface that stands in its place: a number
// or an address used again gives an identical match (facts 16 and 7). An
// interface whose flows cannot be built never had any.
func deletions(iface ifstore.Interface) []ofp.FlowMod {
	mods, err := ifaceFlows(iface, 0)
	if err != nil {
		return nil
	}
	cookie, mask := CookieOf(iface.Key)
	for n := range mods {
		mods[n] = strictDelete(mods[n], cookie, mask)
	}
	return mods
}

// strictDelete deletes the flow that m adds, if its cookie agrees.
func strictDelete(m ofp.FlowMod, cookie, mask uint64) ofp.FlowMod {
	return ofp.FlowMod{
		Command: ofp.FlowDeleteStrict, Table: m.Table, Priority: m.Priority,
		Cookie: cookie, CookieMask: mask, Match: m.Match,
	}
}

func byKey(mods []ofp.FlowMod) map[ofp.FlowKey]ofp.FlowMod {
	m := make(map[ofp.FlowKey]ofp.FlowMod, len(mods))
	for n := range mods {
		m[mods[n].Key()] = mods[n]
	}
	return m
}
