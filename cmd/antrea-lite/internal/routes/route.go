package routes

import (
	"fmt"
	"net/netip"
)

// Route leads to a range of another node.
type Route struct {
	Dst netip.Prefix
	// Via is the other node's address, or, through a tunnel, any address that
	// stands for it on the gateway (the other gateway's).
	Via netip.Addr
	// Device is the gateway's name for a tunnel; "": the link on which Via is.
	Device string
	MTU    int // of packets on this route; 0: the link's
	// Node is whose range it is, for messages.
	Node string
}

// fault words why a route cannot be set.
func (r Route) fault(err error) error {
	if r.Node == "" {
		return fmt.Errorf("route %s: %w", r, err)
	}
	return fmt.Errorf("node %s: route %s: %w", r.Node, r, err)
}

// String returns the route as `ip route` writes it.
func (r Route) String() string {
	s := fmt.Sprintf("%s via %s", r.Dst, r.Via)
	if r.Device != "" {
		s += " dev " + r.Device
	}
	return s
}
