package podnet

import (
	"net/netip"

	"github.com/antrea-lite/podnet/ifstore"
)

// Request is what a caller asks of Add: one interface in one container.
type Request struct {
	ifstore.Key
	Pod   ifstore.Pod
	NetNS string // path of the container's network namespace

	MAC  ifstore.MAC // of the container's end; zero: the Linker chooses
	MTU  int         // 0: the Linker's default
	VLAN uint16      // access VLAN 1..4094; 0: untagged

	// IPAM names who owns the addresses. Empty asks Config.Addresses. With a
	// name, Addresses and Routes come with the request and Config.Addresses is
	// not called for them.
	IPAM      string
	NoIPAM    bool // a layer-2 interface: no addresses, no routes, no announcement
	Addresses []ifstore.Address
	Routes    []ifstore.Route
	WantIPs   []netip.Addr // addresses the caller wants out of Config.Addresses
}

// Allocation is what an address manager gave.
type Allocation struct {
	IPAM      string // name of the owner, stored with the interface
	Addresses []ifstore.Address
	Routes    []ifstore.Route
}

// Link is the cable a Linker made.
type Link struct {
	Name  string            // host interface and OVS port name, 15 characters at most
	MAC   ifstore.MAC       // of the container's end, as read back after creation
	MTU   int               // in force on both ends
	Extra map[string]string // what the Linker must find again after a restart
}
