package ifstore

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Key identifies an interface: the CNI container id and the interface's name
// inside the container. It is the pair that the CNI specification (section
// "Parameters") makes unique. A Pod's name is deliberately not part of it: two
// sandboxes of one Pod may exist side by side.
type Key struct {
	ContainerID string
	IfName      string
}

// String returns "containerID/ifName".
func (k Key) String() string { return k.ContainerID + "/" + k.IfName }

// Pod names the Kubernetes Pod that an interface serves. All fields are empty
// for a container that no Kubernetes runs.
type Pod struct {
	Namespace string
	Name      string
	UID       string // empty when the runtime did not pass K8S_POD_UID
}

// String returns "namespace/name", or "" for the zero Pod.
func (p Pod) String() string {
	if p.Namespace == "" && p.Name == "" {
		return ""
	}
	return p.Namespace + "/" + p.Name
}

// MAC is an IEEE 802 48-bit address, held as a value so that records can be compared and copied.
type MAC [6]byte

// ParseMAC reads the colon-separated form aa:bb:cc:dd:ee:ff.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	if len(s) != 17 {
		return MAC{}, fmt.Errorf("MAC address %q: want the form aa:bb:cc:dd:ee:ff", s)
	}
	for i := range m {
		hi, ok1 := unhex(s[3*i])
		lo, ok2 := unhex(s[3*i+1])
		if !ok1 || !ok2 || (i < 5 && s[3*i+2] != ':') {
			return MAC{}, fmt.Errorf("MAC address %q: want the form aa:bb:cc:dd:ee:ff", s)
		}
		m[i] = hi<<4 | lo
	}
	return m, nil
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// String returns the form aa:bb:cc:dd:ee:ff.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// IsZero reports whether m is the zero address, which stands for "not known".
func (m MAC) IsZero() bool { return m == MAC{} }

// State says how far an interface has come. It is explicit, so that no reader
// has to guess it from a number that is zero or missing.
type State string

const (
	// StateLinked: the cable between container and host exists; its OVS port may not.
	StateLinked State = "linked"
	// StateWaiting: the OVS port row exists, something is still missing before flows can stand; Waiting says what.
	StateWaiting State = "waiting"
	// StateReady: flows for OFPort were confirmed by the switch.
	StateReady State = "ready"
	// StateWithdrawing: the interface is being removed; its flows may still stand. It never becomes ready again.
	StateWithdrawing State = "withdrawing"
)

// Address is one address of an interface with the prefix length of its subnet
// and the gateway that the address manager named for it (the zero Addr: none).
type Address struct {
	Prefix  netip.Prefix // the host's address, not masked: 10.0.0.5/24
	Gateway netip.Addr
}

// Route is one route inside the container. A zero GW means the gateway of the
// interface's address of the same family, as the CNI specification says.
type Route struct {
	Dst netip.Prefix
	GW  netip.Addr
	MTU int // 0: the interface's
}

// Interface is the record of one Pod interface. It is a value: the store keeps
// and returns copies, so a caller may change what it got.
type Interface struct {
	Key
	Pod Pod

	Name   string // OVS port, OVSDB Interface and host netdev name; 15 characters at most
	Gen    string // UUID of the OVSDB Interface row; tells two lives of one Name apart
	OFPort uint32 // OpenFlow port number the flows use; 0 until one is known

	MAC       MAC // of the container's end
	Addresses []Address
	Routes    []Route
	VLAN      uint16 // access VLAN 1..4094; 0: untagged
	MTU       int

	NetNS string // path of the container's network namespace as the runtime gave it
	IPAM  string // who owns the addresses: Addresses' name, or the delegated plugin's type; "" when there are none
	// Leased: podnet's own address manager (Config.Addresses) gave the
	// addresses, so it can vouch for them. False when they came with the request.
	Leased bool

	State   State
	Waiting string            // in StateWaiting: what is missing, in words
	Extra   map[string]string // what a backend must find again after a restart; kept in external_ids under its own keys
	Created time.Time         // when Add began
}

// IPs returns the addresses without their prefix lengths.
func (i Interface) IPs() []netip.Addr {
	ips := make([]netip.Addr, len(i.Addresses))
	for n, a := range i.Addresses {
		ips[n] = a.Prefix.Addr()
	}
	return ips
}

// Clone returns a deep copy.
func (i Interface) Clone() Interface {
	i.Addresses = slices.Clone(i.Addresses)
	i.Routes = slices.Clone(i.Routes)
	i.Extra = maps.Clone(i.Extra)
	return i
}
