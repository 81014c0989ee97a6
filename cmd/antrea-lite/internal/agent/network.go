package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// extraNetwork is where an interface remembers the name of its CNI network.
const extraNetwork = "network"

type networkKey struct{}

// nodeLinker adds to the platform's backend what this agent needs of every interface.
type nodeLinker struct{ *osLinker }

// Link implements podnet.Linker. It remembers the name of the CNI network, which
// comes with the context of Add; podnet does not know CNI networks.
func (l nodeLinker) Link(ctx context.Context, req podnet.Request) (podnet.Link, error) {
	link, err := l.osLinker.Link(ctx, req)
	if err != nil {
		return link, err
	}
	if name, _ := ctx.Value(networkKey{}).(string); name != "" {
		link.Extra = maps.Clone(link.Extra)
		if link.Extra == nil {
			link.Extra = map[string]string{}
		}
		link.Extra[extraNetwork] = name
	}
	return link, nil
}

// pods is where ADD, DEL and CHECK go: podnet, or what the platform puts before it.
type pods interface {
	Add(ctx context.Context, req podnet.Request) (ifstore.Interface, error)
	Delete(ctx context.Context, key ifstore.Key, netNS string) error
	CheckAgainst(ctx context.Context, key ifstore.Key, want podnet.Want) error
}

// cniNetwork is podnet for the CNI server: it keeps GC within one CNI network.
type cniNetwork struct {
	net     *podnet.Network
	pods    pods
	cluster *cluster // its Pods end ADDs that wait

	// starting is held by a GC, and shared for the moment in which an ADD
	// begins: a GC keeps the ADDs that run, and none begins unseen by it.
	starting sync.RWMutex
	mu       sync.Mutex
	adding   map[ifstore.Key]int
}

// Add implements cniserver.Network.
func (n *cniNetwork) Add(ctx context.Context, network string, req podnet.Request) (ifstore.Interface, error) {
	n.count(req.Key, 1)
	defer n.count(req.Key, -1)
	ctx, stop := n.cluster.bind(ctx, req.Pod)
	defer stop()
	return n.pods.Add(context.WithValue(ctx, networkKey{}, network), req)
}

func (n *cniNetwork) count(key ifstore.Key, delta int) {
	if delta > 0 {
		n.starting.RLock()
		defer n.starting.RUnlock()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.adding == nil {
		n.adding = map[ifstore.Key]int{}
	}
	n.adding[key] += delta
	if n.adding[key] == 0 {
		delete(n.adding, key)
	}
}

// Delete implements cniserver.Network.
func (n *cniNetwork) Delete(ctx context.Context, key ifstore.Key, netNS string) error {
	return n.pods.Delete(ctx, key, netNS)
}

// Check implements cniserver.Network.
func (n *cniNetwork) Check(ctx context.Context, key ifstore.Key, netNS string, want *cniapi.Want) error {
	w := podnet.Want{NetNS: netNS}
	if want == nil {
		return n.pods.CheckAgainst(ctx, key, w)
	}
	if want.MAC != "" {
		mac, err := ifstore.ParseMAC(want.MAC)
		if err != nil {
			return fmt.Errorf("%w: prevResult: %w", podnet.ErrBadRequest, err)
		}
		w.MAC = mac
	}
	for _, p := range want.IPs {
		w.IPs = append(w.IPs, p.Addr())
	}
	return n.pods.CheckAgainst(ctx, key, w)
}

// GC implements cniserver.Network. The runtime names the valid attachments of
// one network; interfaces of others, and those of which the network is not
// known, are none of its business.
func (n *cniNetwork) GC(ctx context.Context, network string, valid []ifstore.Key) error {
	n.starting.Lock()
	defer n.starting.Unlock()
	n.mu.Lock()
	for key := range n.adding {
		valid = append(valid, key)
	}
	n.mu.Unlock()
	for _, iface := range n.net.Interfaces() {
		if iface.Extra[extraNetwork] != network {
			valid = append(valid, iface.Key)
		}
	}
	return n.net.GC(ctx, valid)
}

// portTable is what the OpenFlow session knows, for podnet.
type portTable struct{ of *ofclient.Client }

// PortState implements podnet.PortTable.
func (t portTable) PortState(name string) (uint32, bool) {
	p, ok := t.of.Port(name)
	return p.Number, ok
}

// listed is the latest state of a port, for a readiness that waits for it.
func (t portTable) listed(name string) (async.PortState, bool) {
	p, ok := t.of.Port(name)
	return async.PortState{Number: p.Number, Live: p.State&ofp.PortStateLive != 0}, ok
}

// describe words what the session last told about a port.
func (t portTable) describe(name string) string {
	p, ok := t.of.Port(name)
	if !ok {
		return ""
	}
	return fmt.Sprintf("number %d, state %#x", p.Number, uint32(p.State))
}

func addrsOf(prefixes []netip.Prefix) []netip.Addr {
	out := make([]netip.Addr, len(prefixes))
	for i, p := range prefixes {
		out[i] = p.Addr()
	}
	return out
}
