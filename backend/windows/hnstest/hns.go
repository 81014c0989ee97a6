package hnstest

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/ifstore"
)

// HNS is a windows.HNS in memory. Methods may be called concurrently. Like the
// real one it does not look at the context of a call.
type HNS struct {
	mu         sync.Mutex
	next       uint64
	networks   map[windows.GUID]windows.Network
	endpoints  map[windows.GUID]windows.Endpoint
	namespaces map[windows.GUID]bool
	pinned     map[string]windows.EndpointState // states that never change, by endpoint name
	ownMAC     bool

	faults  map[windows.Op]*Fault
	calls   []string
	running map[windows.Op]int
	most    map[windows.Op]int
}

var _ windows.HNS = (*HNS)(nil)

// New returns an HNS without any object.
func New() *HNS {
	return &HNS{
		networks:   make(map[windows.GUID]windows.Network),
		endpoints:  make(map[windows.GUID]windows.Endpoint),
		namespaces: make(map[windows.GUID]bool),
		pinned:     make(map[string]windows.EndpointState),
		faults:     make(map[windows.Op]*Fault),
		running:    make(map[windows.Op]int),
		most:       make(map[windows.Op]int),
	}
}

// newID returns an id that no object had before. h.mu is held.
func (h *HNS) newID() windows.GUID {
	h.next++
	id := windows.GUID{0xfa, 0xce, 6: 0x40, 8: 0x80}
	binary.BigEndian.PutUint32(id[12:], uint32(h.next))
	return id
}

func fail(code windows.Code, format string, args ...any) error {
	return &windows.HNSError{Op: fmt.Sprintf(format, args...), Code: code}
}

// List implements windows.HNS.
func (h *HNS) List(_ context.Context, q windows.Query) (windows.Objects, error) {
	subject := q.Kind.String()
	if q.Name != "" {
		subject += " " + q.Name
	}
	f, err := h.enter(windows.OpList, subject)
	defer h.leave(windows.OpList)
	if err != nil {
		return windows.Objects{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var o windows.Objects
	wanted := func(id windows.GUID, name string) bool {
		return (q.ID.IsZero() || q.ID == id) && (q.Name == "" || q.Name == name)
	}
	switch q.Kind {
	case windows.Networks:
		for _, id := range sorted(h.networks) {
			if n := h.networks[id]; wanted(id, n.Name) {
				o.Networks = append(o.Networks, n)
			}
		}
	case windows.Endpoints:
		for _, id := range sorted(h.endpoints) {
			if e := h.endpoints[id]; wanted(id, e.Name) {
				o.Endpoints = append(o.Endpoints, h.shown(e, q.States))
			}
		}
	case windows.Namespaces:
		for _, id := range sorted(h.namespaces) {
			if wanted(id, "") {
				o.Namespaces = append(o.Namespaces, id)
			}
		}
	}
	return o, f.After
}

// shown is a copy of e as a caller sees it. h.mu is held.
func (h *HNS) shown(e windows.Endpoint, states bool) windows.Endpoint {
	e.Addresses, e.Routes = slices.Clone(e.Addresses), slices.Clone(e.Routes)
	if state, ok := h.pinned[e.Name]; ok {
		e.State = state
	}
	if !states {
		e.State = windows.StateUnknown
	}
	return e
}

func sorted[V any](m map[windows.GUID]V) []windows.GUID {
	return slices.SortedFunc(maps.Keys(m), func(a, b windows.GUID) int { return slices.Compare(a[:], b[:]) })
}

// CreateNetwork implements windows.HNS.
func (h *HNS) CreateNetwork(_ context.Context, n windows.Network) (windows.Network, error) {
	f, err := h.enter(windows.OpCreateNetwork, n.Name)
	defer h.leave(windows.OpCreateNetwork)
	if err != nil {
		return windows.Network{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, other := range h.networks {
		if other.Name == n.Name || n.Adapter != "" && other.Adapter == n.Adapter {
			return windows.Network{}, fail(windows.CodeNetworkExists, "create network %q", n.Name)
		}
	}
	n.ID = h.newID()
	h.networks[n.ID] = n
	return n, f.After
}

// CreateEndpoint implements windows.HNS.
func (h *HNS) CreateEndpoint(_ context.Context, e windows.Endpoint) (windows.Endpoint, error) {
	f, err := h.enter(windows.OpCreateEndpoint, e.Name)
	defer h.leave(windows.OpCreateEndpoint)
	if err != nil {
		return windows.Endpoint{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	network, ok := h.networks[e.Network]
	if !ok {
		return windows.Endpoint{}, fail(windows.CodeNetworkNotFound, "create endpoint %q", e.Name)
	}
	for _, a := range e.Addresses {
		if len(network.Subnets) > 0 && !slices.ContainsFunc(network.Subnets, func(s windows.Subnet) bool { return s.Prefix.Contains(a.Addr()) }) {
			return windows.Endpoint{}, fail(0x803b001e, "create endpoint %q with address %v", e.Name, a)
		}
		for _, other := range h.endpoints {
			if other.Network == e.Network && slices.ContainsFunc(other.Addresses, func(p netip.Prefix) bool { return p.Addr() == a.Addr() }) {
				return windows.Endpoint{}, fail(windows.CodeAddressTaken, "create endpoint %q with address %v", e.Name, a)
			}
		}
	}
	e.ID, e.Namespace, e.State = h.newID(), windows.GUID{}, windows.StateCreated
	if e.MAC.IsZero() || h.ownMAC {
		e.MAC = ifstore.MAC{0x00, 0x15, 0x5d, e.ID[13], e.ID[14], e.ID[15]}
	}
	h.endpoints[e.ID] = h.shown(e, true)
	return h.shown(e, false), f.After
}

// DeleteEndpoint implements windows.HNS.
func (h *HNS) DeleteEndpoint(_ context.Context, id windows.GUID) error {
	f, err := h.enter(windows.OpDeleteEndpoint, id.String())
	defer h.leave(windows.OpDeleteEndpoint)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.endpoints[id]; !ok {
		return fail(windows.CodeNotFound, "delete endpoint %s", id)
	}
	delete(h.endpoints, id)
	return f.After
}

// ModifyNamespace implements windows.HNS.
func (h *HNS) ModifyNamespace(_ context.Context, c windows.NamespaceChange) error {
	op := windows.OpAttach
	if c.Detach {
		op = windows.OpDetach
	}
	f, err := h.enter(op, c.Endpoint.String())
	defer h.leave(op)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.endpoints[c.Endpoint]
	switch {
	case !h.namespaces[c.Namespace]:
		return fail(windows.CodeNotFound, "%s in namespace %s", op, c.Namespace)
	case !ok:
		return fail(windows.CodeEndpointNotFound, "%s endpoint %s", op, c.Endpoint)
	case c.Detach && e.Namespace != c.Namespace:
		return fail(windows.CodeEndpointNotFound, "detach endpoint %s", c.Endpoint)
	case c.Detach:
		e.Namespace, e.State = windows.GUID{}, windows.StateDetached
	case e.Namespace == c.Namespace:
		return fail(windows.CodeEndpointAttached, "attach endpoint %s", c.Endpoint)
	case !e.Namespace.IsZero():
		return fail(0x803b002b, "attach endpoint %s", c.Endpoint)
	default:
		e.Namespace, e.State = c.Namespace, windows.StateAttachedSharing
	}
	h.endpoints[e.ID] = e
	return f.After
}
