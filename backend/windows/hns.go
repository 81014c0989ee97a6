package windows

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// HNS is what podnet needs of the Host Network Service. *HCN implements it over
// hcsshim; hnstest.HNS in memory. All methods may be called concurrently.
//
// Implementations may ignore ctx and block for ever: HNS's own calls take no
// deadline. Errors of HNS itself are *HNSError, on whose Code alone callers decide.
type HNS interface {
	// List returns the objects that match q, complete and current: an empty
	// result means that there are none.
	List(ctx context.Context, q Query) (Objects, error)
	// CreateNetwork makes a network and returns it as HNS has it, with its ID.
	CreateNetwork(ctx context.Context, n Network) (Network, error)
	// CreateEndpoint makes an endpoint on e.Network, attached to nothing, and
	// returns it as HNS has it. ErrNotFound: the network is gone.
	CreateEndpoint(ctx context.Context, e Endpoint) (Endpoint, error)
	// DeleteEndpoint removes an endpoint, attached or not. Gone: ErrNotFound.
	DeleteEndpoint(ctx context.Context, id GUID) error
	// ModifyNamespace attaches an endpoint to a namespace or takes it out.
	// ErrNotFound: one of the two is gone, or the endpoint is not in there.
	ModifyNamespace(ctx context.Context, c NamespaceChange) error
}

// Kind is a kind of object.
type Kind int

// The kinds of objects.
const (
	Networks Kind = iota + 1
	Endpoints
	Namespaces
)

// String returns the kind as a word for messages.
func (k Kind) String() string {
	switch k {
	case Networks:
		return "networks"
	case Endpoints:
		return "endpoints"
	case Namespaces:
		return "namespaces"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Query selects objects of one kind. It is a value that can be compared.
type Query struct {
	Kind Kind
	Name string // only networks or endpoints of this name; "": of any
	ID   GUID   // only the object of this id; zero: any
	// States asks for the State of endpoints too, which costs HNS another call.
	States bool
}

// Objects are the result of a Query; only the slice of its kind is set.
// Several callers may share them: they are not to be changed.
type Objects struct {
	Networks   []Network
	Endpoints  []Endpoint
	Namespaces []GUID
}

// NetworkType is HNS's word for what a network is.
type NetworkType string

// Transparent connects endpoints to the Hyper-V switch of an adapter as they
// are. It is the type under which Open vSwitch's extension sees them.
const Transparent NetworkType = "Transparent"

// Network is a network of HNS: a Hyper-V switch on a host adapter.
type Network struct {
	ID      GUID
	Name    string
	Type    NetworkType
	Adapter string   // the host adapter under the switch ("Ethernet0")
	Subnets []Subnet // addresses outside of them are refused; none: any address
}

// Subnet is an address range of a network.
type Subnet struct {
	Prefix  netip.Prefix // masked
	Gateway netip.Addr   // the zero Addr: none
}

// EndpointState is where an endpoint is in its life, by HNS's numbers.
type EndpointState uint16

// The states, with the names that hcsshim gives them. StateUnknown is also
// what an endpoint has whose state was not asked for.
const (
	StateUnknown EndpointState = iota
	StateCreated
	StateAttached
	StateAttachedSharing
	StateDetached
	StateDegraded
	StateDestroyed
)

// String returns number and name, as both are searched for.
func (s EndpointState) String() string {
	names := [...]string{"unknown", "created", "attached", "attached, shared", "detached", "degraded", "destroyed"}
	if int(s) < len(names) {
		return fmt.Sprintf("%d (%s)", uint16(s), names[s])
	}
	return fmt.Sprintf("%d", uint16(s))
}

// Endpoint is one virtual NIC.
type Endpoint struct {
	ID        GUID
	Network   GUID
	Namespace GUID // zero: attached to none
	Name      string
	MAC       ifstore.MAC // zero in a create: HNS chooses
	Addresses []netip.Prefix
	Routes    []EndpointRoute
	DNS       podnet.DNS
	State     EndpointState
}

// String names the endpoint in messages so that an administrator can find it
// (hnsdiag list endpoints, Get-HnsEndpoint).
func (e Endpoint) String() string {
	s := fmt.Sprintf("endpoint %q (%s, MAC address %s", e.Name, e.ID, e.MAC)
	for i, a := range e.Addresses {
		if i == 0 {
			s += ", addresses"
		}
		s += " " + a.String()
	}
	if !e.Namespace.IsZero() {
		s += ", in namespace " + e.Namespace.String()
	}
	return s + ")"
}

// has reports whether the endpoint has address ip.
func (e Endpoint) has(ip netip.Addr) bool {
	return slices.ContainsFunc(e.Addresses, func(p netip.Prefix) bool { return p.Addr() == ip })
}

// EndpointRoute is one route that HNS puts into the compartment.
type EndpointRoute struct {
	Dst netip.Prefix // masked
	GW  netip.Addr
}

// NamespaceChange is a change of what is in a namespace.
type NamespaceChange struct {
	Namespace GUID
	Endpoint  GUID
	Detach    bool // take out; else attach
}
