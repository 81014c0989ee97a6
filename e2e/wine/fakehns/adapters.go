package fakehns

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Adapter is a network adapter of the node that programs with FAKE_HNS_ADDR see
// besides the machine's own.
type Adapter struct {
	Name  string // "vEthernet (abc)"; it identifies the adapter
	Index int
	MTU   int
	Up    bool
	MAC   net.HardwareAddr
	Addrs []netip.Prefix
	// Compartment is the network compartment it is in, 0 or 1 for the host's.
	// An adapter of another one is seen only by a caller of
	// GetAdaptersAddresses that asks for all compartments and interfaces.
	Compartment int
}

// SetAdapter adds an adapter, or replaces the one of that name.
func (s *Server) SetAdapter(a Adapter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adapters[a.Name] = a
}

// RemoveAdapter removes the adapter of that name, if there is one.
func (s *Server) RemoveAdapter(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.adapters, name)
}

// StartContainer makes the adapter of an endpoint that is attached to a
// namespace, as Windows does when the Pod's first container starts, which is
// after CNI ADD. Its name is "vEthernet (NAME OF THE ENDPOINT)".
func (s *Server) StartContainer(endpointID string) (Adapter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.objects[endpoint][strings.ToLower(endpointID)]
	if e == nil {
		return Adapter{}, fmt.Errorf("fakehns: no endpoint %s", endpointID)
	}
	ns := s.objects[namespace][e.id("HostComputeNamespace")]
	if ns == nil {
		return Adapter{}, fmt.Errorf("fakehns: endpoint %s is in no namespace", e.text("Name"))
	}
	mac, err := net.ParseMAC(e.text("MacAddress"))
	if err != nil {
		return Adapter{}, fmt.Errorf("fakehns: endpoint %s: %w", e.text("Name"), err)
	}
	a := Adapter{Name: adapterName(e), MTU: 1500, Up: true, MAC: mac, Compartment: ns.number("NamespaceId"),
		Index: 100 + len(s.adapters)}
	for _, x := range s.adapters {
		a.Index = max(a.Index, x.Index+1)
	}
	for _, c := range e.list("IpConfigurations") {
		ip, err := netip.ParseAddr(c.text("IpAddress"))
		if err != nil {
			return Adapter{}, fmt.Errorf("fakehns: endpoint %s: %w", e.text("Name"), err)
		}
		a.Addrs = append(a.Addrs, netip.PrefixFrom(ip, c.number("PrefixLength")))
	}
	s.adapters[a.Name] = a
	return a, nil
}

func adapterName(endpoint Object) string { return "vEthernet (" + endpoint.text("Name") + ")" }

// adapterLines is the list as e2e/wine/dll/adapters.c reads it.
func (s *Server) adapterLines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.adapters)) {
		a := s.adapters[name]
		up, addrs := 0, "-"
		if a.Up {
			up = 1
		}
		for i, p := range a.Addrs {
			if i == 0 {
				addrs = p.String()
			} else {
				addrs += "," + p.String()
			}
		}
		fmt.Fprintf(&b, "%d %d %d %012x %d %s %s\n", a.Index, a.MTU, up, []byte(a.MAC), a.Compartment, addrs, a.Name)
	}
	return b.String()
}
