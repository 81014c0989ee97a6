package windows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/Microsoft/hcsshim"
	"github.com/Microsoft/hcsshim/hcn"
	"golang.org/x/sys/windows"
	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// HCN is the HNS of a Windows node, through hcsshim. Its calls take no deadline
// and do not look at ctx; the Linker stands a guard before them. It needs
// administrator rights and Windows Server 2019 or later.
type HCN struct{}

// NewHCN returns the HNS of this node. It asks nothing of it yet.
func NewHCN() *HCN { return &HCN{} }

var _ HNS = (*HCN)(nil)

// listTries bounds how often a list is begun anew. hcsshim lists by asking for
// the ids and then for one object after the other, and fails with "not found"
// when one of them was deleted in between.
const listTries = 20

// List implements HNS.
func (h *HCN) List(ctx context.Context, q Query) (Objects, error) {
	var err error
	for range listTries {
		var o Objects
		if o, err = list(ctx, q); !errors.Is(err, ErrNotFound) {
			return o, err
		}
	}
	// The sentinel stays here: a list says "there is none" by being empty.
	return Objects{}, fmt.Errorf("HNS changed during each of %d attempts to read it: %v", listTries, err)
}

func list(ctx context.Context, q Query) (Objects, error) {
	query, err := hcnQuery(q)
	if err != nil {
		return Objects{}, err
	}
	switch q.Kind {
	case Networks:
		return listNetworks(q, query)
	case Endpoints:
		return listEndpoints(ctx, q, query)
	case Namespaces:
		return listNamespaces(q, query)
	}
	return Objects{}, fmt.Errorf("list %v: %w", q.Kind, errors.ErrUnsupported)
}

// hcnQuery is q in HNS's words. The results are filtered again: what HNS makes
// of a filter differs between versions.
func hcnQuery(q Query) (hcn.HostComputeQuery, error) {
	query := hcn.HostComputeQuery{SchemaVersion: hcn.SchemaVersion{Major: 2}}
	filter := make(map[string]string)
	if q.Name != "" {
		filter["Name"] = q.Name
	}
	if !q.ID.IsZero() {
		filter["ID"] = q.ID.String()
	}
	if len(filter) == 0 {
		return query, nil
	}
	text, err := json.Marshal(filter)
	query.Filter = string(text)
	return query, err
}

func (q Query) matches(id GUID, name string) bool {
	return (q.ID.IsZero() || q.ID == id) && (q.Name == "" || strings.EqualFold(q.Name, name))
}

func listNetworks(q Query, query hcn.HostComputeQuery) (o Objects, err error) {
	list, err := hcn.ListNetworksQuery(query)
	if err != nil {
		return o, hnsError("list networks", err)
	}
	for i := range list {
		n, err := networkOf(&list[i])
		if err != nil {
			return Objects{}, err
		}
		if q.matches(n.ID, n.Name) {
			o.Networks = append(o.Networks, n)
		}
	}
	return o, nil
}

func listEndpoints(ctx context.Context, q Query, query hcn.HostComputeQuery) (o Objects, err error) {
	list, err := hcn.ListEndpointsQuery(query)
	if err != nil {
		return o, hnsError("list endpoints", err)
	}
	var states map[GUID]EndpointState
	if q.States && len(list) > 0 {
		states = endpointStates(ctx)
	}
	for i := range list {
		e, err := endpointOf(&list[i])
		if err != nil {
			return Objects{}, err
		}
		e.State = states[e.ID]
		if q.matches(e.ID, e.Name) {
			o.Endpoints = append(o.Endpoints, e)
		}
	}
	return o, nil
}

func listNamespaces(q Query, query hcn.HostComputeQuery) (o Objects, err error) {
	list, err := hcn.ListNamespacesQuery(query)
	if err != nil {
		return o, hnsError("list namespaces", err)
	}
	for _, n := range list {
		id, err := ParseGUID(n.Id)
		if err != nil {
			return Objects{}, fmt.Errorf("namespace of HNS: %w", err)
		}
		if q.matches(id, "") {
			o.Namespaces = append(o.Namespaces, id)
		}
	}
	return o, nil
}

// endpointStates asks HNS's first API, as the second does not tell states. They
// are words for people; an HNS that does not give them is no reason to fail.
func endpointStates(ctx context.Context) map[GUID]EndpointState {
	list, err := hcsshim.HNSListEndpointRequest()
	if err != nil {
		klog.FromContext(ctx).V(2).Info("HNS does not tell the states of its endpoints", "reason", err.Error())
		return nil
	}
	states := make(map[GUID]EndpointState, len(list))
	for _, e := range list {
		if id, err := ParseGUID(e.Id); err == nil {
			states[id] = EndpointState(e.State)
		}
	}
	return states
}

// CreateNetwork implements HNS.
func (h *HCN) CreateNetwork(_ context.Context, n Network) (Network, error) {
	ask := hcn.HostComputeNetwork{Name: n.Name, Type: hcn.NetworkType(n.Type), SchemaVersion: hcn.SchemaVersion{Major: 2}}
	if n.Adapter != "" {
		settings, err := json.Marshal(hcn.NetAdapterNameNetworkPolicySetting{NetworkAdapterName: n.Adapter})
		if err != nil {
			return Network{}, err
		}
		ask.Policies = []hcn.NetworkPolicy{{Type: hcn.NetAdapterName, Settings: settings}}
	}
	if len(n.Subnets) > 0 {
		ipam := hcn.Ipam{Type: "Static"}
		for _, s := range n.Subnets {
			subnet := hcn.Subnet{IpAddressPrefix: s.Prefix.String()}
			if s.Gateway.IsValid() {
				subnet.Routes = []hcn.Route{{NextHop: s.Gateway.String(), DestinationPrefix: defaultDst(s.Gateway.Is4()).String()}}
			}
			ipam.Subnets = append(ipam.Subnets, subnet)
		}
		ask.Ipams = []hcn.Ipam{ipam}
	}
	made, err := ask.Create()
	if err != nil {
		return Network{}, hnsError(fmt.Sprintf("create network %q", n.Name), err)
	}
	return networkOf(made)
}

// CreateEndpoint implements HNS.
func (h *HCN) CreateEndpoint(_ context.Context, e Endpoint) (Endpoint, error) {
	ask := hcn.HostComputeEndpoint{
		Name: e.Name, HostComputeNetwork: e.Network.String(), SchemaVersion: hcn.SchemaVersion{Major: 2},
		Dns: hcn.Dns{Domain: e.DNS.Domain, Search: e.DNS.Search, Options: e.DNS.Options},
	}
	if !e.MAC.IsZero() {
		ask.MacAddress = strings.ToUpper(strings.ReplaceAll(e.MAC.String(), ":", "-"))
	}
	for _, a := range e.Addresses {
		ask.IpConfigurations = append(ask.IpConfigurations, hcn.IpConfig{IpAddress: a.Addr().String(), PrefixLength: uint8(a.Bits())})
	}
	for _, r := range e.Routes {
		ask.Routes = append(ask.Routes, hcn.Route{NextHop: r.GW.String(), DestinationPrefix: r.Dst.String()})
	}
	for _, s := range e.DNS.Servers {
		ask.Dns.ServerList = append(ask.Dns.ServerList, s.String())
	}
	made, err := ask.Create()
	if err != nil {
		return Endpoint{}, hnsError(fmt.Sprintf("create endpoint %q", e.Name), err)
	}
	return endpointOf(made)
}

// DeleteEndpoint implements HNS.
func (h *HCN) DeleteEndpoint(_ context.Context, id GUID) error {
	e := hcn.HostComputeEndpoint{Id: id.String()}
	return hnsError("delete endpoint "+id.String(), e.Delete())
}

// ModifyNamespace implements HNS.
func (h *HCN) ModifyNamespace(_ context.Context, c NamespaceChange) error {
	if c.Detach {
		return hnsError(fmt.Sprintf("detach endpoint %s from namespace %s", c.Endpoint, c.Namespace),
			hcn.RemoveNamespaceEndpoint(c.Namespace.String(), c.Endpoint.String()))
	}
	return hnsError(fmt.Sprintf("attach endpoint %s to namespace %s", c.Endpoint, c.Namespace),
		hcn.AddNamespaceEndpoint(c.Namespace.String(), c.Endpoint.String()))
}

func networkOf(n *hcn.HostComputeNetwork) (Network, error) {
	id, err := ParseGUID(n.Id)
	if err != nil {
		return Network{}, fmt.Errorf("network %q of HNS: %w", n.Name, err)
	}
	out := Network{ID: id, Name: n.Name, Type: NetworkType(n.Type)}
	for _, p := range n.Policies {
		var settings hcn.NetAdapterNameNetworkPolicySetting
		if p.Type == hcn.NetAdapterName && json.Unmarshal(p.Settings, &settings) == nil {
			out.Adapter = settings.NetworkAdapterName
		}
	}
	for _, ipam := range n.Ipams {
		for _, s := range ipam.Subnets {
			prefix, err := netip.ParsePrefix(s.IpAddressPrefix)
			if err != nil {
				continue // a network that leaves addresses to DHCP may name none
			}
			subnet := Subnet{Prefix: prefix.Masked()}
			for _, r := range s.Routes {
				if gw, err := netip.ParseAddr(r.NextHop); err == nil {
					subnet.Gateway = gw
					break
				}
			}
			out.Subnets = append(out.Subnets, subnet)
		}
	}
	return out, nil
}

// endpointOf reads an endpoint. Others' endpoints may have values that this
// package knows nothing of; only the ids have to be readable.
func endpointOf(e *hcn.HostComputeEndpoint) (Endpoint, error) {
	id, err := ParseGUID(e.Id)
	if err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q of HNS: %w", e.Name, err)
	}
	out := Endpoint{ID: id, Name: e.Name, DNS: podnet.DNS{Domain: e.Dns.Domain, Search: e.Dns.Search, Options: e.Dns.Options}}
	out.Network, _ = ParseGUID(e.HostComputeNetwork)
	out.Namespace, _ = ParseGUID(e.HostComputeNamespace)
	out.MAC, _ = ifstore.ParseMAC(strings.ToLower(strings.ReplaceAll(e.MacAddress, "-", ":")))
	for _, c := range e.IpConfigurations {
		if addr, err := netip.ParseAddr(c.IpAddress); err == nil {
			out.Addresses = append(out.Addresses, netip.PrefixFrom(addr, int(c.PrefixLength)))
		}
	}
	for _, r := range e.Routes {
		dst, dstErr := netip.ParsePrefix(r.DestinationPrefix)
		gw, gwErr := netip.ParseAddr(r.NextHop)
		if dstErr == nil && gwErr == nil {
			out.Routes = append(out.Routes, EndpointRoute{Dst: dst.Masked(), GW: gw})
		}
	}
	for _, s := range e.Dns.ServerList {
		if addr, err := netip.ParseAddr(s); err == nil {
			out.DNS.Servers = append(out.DNS.Servers, addr)
		}
	}
	return out, nil
}

// hnsError gives an error of hcsshim its code. Errors that carry none, such as
// a DLL that is missing, stay as they are.
func hnsError(op string, err error) error {
	if err == nil {
		return nil
	}
	code, ok := codeOf(err)
	if !ok {
		return fmt.Errorf("%s: %w", op, err)
	}
	return &HNSError{Op: op, Code: code, Text: err.Error()}
}

// codeOf finds the code in an error of hcsshim. hcn.IsNotFoundError is true for
// searches that found nothing and false for an HcnError with ERROR_NOT_FOUND, so
// that both have to be asked for.
func codeOf(err error) (Code, bool) {
	var hcnErr *hcn.HcnError
	var errno windows.Errno
	switch {
	case hcn.IsNotFoundError(err) || hcn.IsElementNotFoundError(err):
		return CodeNotFound, true
	case errors.As(err, &hcnErr) && hcnErr.HcsError != nil && errors.As(hcnErr.Err, &errno), errors.As(err, &errno):
		return Code(errno), true
	}
	return 0, false
}
