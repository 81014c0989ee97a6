package gateway

import (
	"net/netip"

	"github.com/antrea-lite/podnet/ifstore"
)

// Config says how the gateway has to be.
type Config struct {
	Name      string
	MTU       int
	Addresses []netip.Prefix // with the prefix lengths of the Pod CIDRs
}

// State is the gateway as it was found or left.
type State struct {
	MAC       ifstore.MAC
	MTU       int
	Up        bool
	Addresses []netip.Prefix // link-local ones included
}
