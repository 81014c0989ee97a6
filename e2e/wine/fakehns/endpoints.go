package fakehns

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/uuid"
)

// newNetwork says why a network cannot be made, or nil.
func (s *Server) newNetwork(o Object) *Reply {
	for _, n := range s.objects[network] {
		if n.Name() == o.Name() {
			return Fail(NetworkExists, "The network already exists. ")
		}
	}
	return nil
}

// newEndpoint completes an endpoint's document and says why it cannot be made, or
// nil. HNS lets endpoints share a name, not an address.
func (s *Server) newEndpoint(o Object, inNetwork uint64) *Reply {
	h, ok := s.handles[inNetwork]
	if !ok || h.kind != network {
		return badHandle()
	}
	n := s.objects[network][h.id]
	if n == nil {
		return Fail(NetworkNotFound, "The network was not found. ")
	}
	o["HostComputeNetwork"] = s.shown(h.id)
	for _, c := range o.list("IpConfigurations") {
		ip, err := netip.ParseAddr(c.text("IpAddress"))
		if err != nil || !inSubnets(n, ip) {
			return Fail(InvalidIP, "IP address is either invalid or not part of any configured subnet(s). ")
		}
		if s.holder(h.id, ip) != nil {
			return Fail(AddressInvalid, "The IP address is invalid or reserved. ")
		}
	}
	if o.text("MacAddress") == "" {
		// Microsoft's own range, as for a virtual machine.
		id := uuid.New()
		o["MacAddress"] = fmt.Sprintf("00-15-5D-%s-%s-%s", up(id[0]), up(id[1]), up(id[2]))
	}
	return nil
}

func up(b byte) string { return strings.ToUpper(hex.EncodeToString([]byte{b})) }

// holder is the endpoint of a network that has the address.
func (s *Server) holder(networkID string, ip netip.Addr) Object {
	for _, e := range s.objects[endpoint] {
		if e.id("HostComputeNetwork") != networkID {
			continue
		}
		for _, c := range e.list("IpConfigurations") {
			if c.text("IpAddress") == ip.String() {
				return e
			}
		}
	}
	return nil
}

// inSubnets is true for a network without subnets, too.
func inSubnets(n Object, ip netip.Addr) bool {
	some := false
	for _, ipam := range n.list("Ipams") {
		for _, sub := range ipam.list("Subnets") {
			some = true
			if p, err := netip.ParsePrefix(sub.text("IpAddressPrefix")); err == nil && p.Contains(ip) {
				return true
			}
		}
	}
	return !some
}

// States of an endpoint as the first version of the API counts them.
const (
	StateCreated  = 1
	StateAttached = 2
	StateSharing  = 3 // in bug reports: an endpoint that never got to its container
	StateDetached = 4
	StateDegraded = 5
)

// SetState makes the service say that an endpoint is in that state, whatever it
// does; 0 ends that. Only the first version of the API shows states.
func (s *Server) SetState(endpointID string, state int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.objects[endpoint][strings.ToLower(endpointID)]
	if e == nil {
		return fmt.Errorf("fakehns: no endpoint %s", endpointID)
	}
	s.states[e.ID()] = state
	return nil
}

// firstEndpoint is an endpoint in the first version's form.
func (s *Server) firstEndpoint(e Object) Object {
	state := s.states[e.ID()]
	if state == 0 {
		state = StateCreated
		if _, ok := s.adapters[adapterName(e)]; ok {
			state = StateAttached
		}
	}
	out := Object{"ID": e["ID"], "Name": e["Name"], "VirtualNetwork": e["HostComputeNetwork"],
		"MacAddress": e["MacAddress"], "State": state}
	if c := e.list("IpConfigurations"); len(c) > 0 {
		out["IPAddress"], out["PrefixLength"] = c[0]["IpAddress"], c[0]["PrefixLength"]
	}
	return out
}
