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

	// HostDevice names a host interface that others make, now or later (a VF's
	// representor, a virtual machine's tap), instead of a cable that the Linker
	// makes. Not every Linker can do that. "": the Linker makes one.
	HostDevice string

	// IPAM names who owns the addresses. Empty asks Config.Addresses. With a
	// name, Addresses and Routes come with the request and Config.Addresses is
	// not called for them.
	IPAM      string
	NoIPAM    bool // a layer-2 interface: no addresses, no routes, no announcement
	Addresses []ifstore.Address
	Routes    []ifstore.Route
	WantIPs   []netip.Addr // addresses the caller wants out of Config.Addresses

	// DNS is for Linkers that configure the container's resolver (Windows). On
	// Linux the runtime writes resolv.conf. It is not part of the record.
	DNS DNS
}

// DNS is the resolver configuration of a container, as CNI has it. The zero DNS
// names nothing.
type DNS struct {
	Servers []netip.Addr
	Domain  string
	Search  []string
	Options []string
}

// IsZero reports whether d names nothing.
func (d DNS) IsZero() bool {
	return len(d.Servers) == 0 && d.Domain == "" && len(d.Search) == 0 && len(d.Options) == 0
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
