package podnet

import (
	"context"

	"github.com/antrea-lite/podnet/ifstore"
)

// Linker is the half that knows the operating system: it makes and removes the
// cable between a container and the host. Methods may be called concurrently
// for different containers.
type Linker interface {
	// Link makes the cable and configures the container's end with the
	// addresses, routes, MAC and MTU of req. On error nothing is left behind.
	Link(ctx context.Context, req Request) (Link, error)
	// Unlink removes the cable. Pieces that are missing count as removed.
	Unlink(ctx context.Context, iface ifstore.Interface) error
	// Check compares the cable with the record: nil, or what differs.
	Check(ctx context.Context, iface ifstore.Interface) error
}

// Announcer is implemented by a Linker that tells the neighbours about a new
// interface (gratuitous ARP, unsolicited NA). It is called after the flows are
// in; its error is logged, never fatal.
type Announcer interface {
	Announce(ctx context.Context, iface ifstore.Interface) error
}

// Prober is implemented by a Linker that can tell whether the container behind
// an interface still exists. Reconcile sweeps an interface only after two
// observations of false.
type Prober interface {
	Alive(ctx context.Context, iface ifstore.Interface) (bool, error)
}

// OrphanUnlinker is implemented by a Linker that can find a cable by its key
// alone, because the names it gives derive from it. Delete calls it for keys
// that are in no record: a process that was killed between deleting the port
// and removing the cable leaves one behind. Nothing there: nil.
type OrphanUnlinker interface {
	UnlinkOrphan(ctx context.Context, key ifstore.Key) error
}

// Port is a port of the bridge as OVSDB has it.
type Port struct {
	PortKey
	Type        string            // Interface.type: "", "internal", "geneve" ...
	OFPort      int32             // Interface.ofport; 0 when unset, -1 when OVS could not open the device
	Error       string            // Interface.error
	ExternalIDs map[string]string // of the Port row
}

// Bridge is the OVSDB side of one bridge; *vswitch.Client implements it. All
// methods may be called concurrently; implementations join changes that wait
// at the same moment.
type Bridge interface {
	// AddPort inserts a port of type port.Type with its external_ids and
	// returns the key of the new row. A port of that name: ErrPortExists.
	AddPort(ctx context.Context, port Port) (PortKey, error)
	// DeletePort removes that life of the port. Gone already: nil.
	DeletePort(ctx context.Context, key PortKey) error
	// SetExternalIDs merges ids into the external_ids of the port's row (an empty value
	// removes its key). Gone: ErrNoPort.
	SetExternalIDs(ctx context.Context, key PortKey, ids map[string]string) error
	// Ports lists every port of the bridge, from a complete and current view.
	Ports(ctx context.Context) ([]Port, error)
	// OFPort returns the number of that life of the port now, without waiting
	// for one: ErrNoPort, ErrNoNumber, or a *PortError with OVS's own text.
	OFPort(ctx context.Context, key PortKey) (uint32, error)
}

// Flows installs and removes the flows of interfaces; *podflows.Installer
// implements it. One result per interface. An interface's flows go in as one
// bundle: all or none. Both are idempotent. An error that wraps
// ErrOutcomeUnknown leaves open whether the switch applied the change.
type Flows interface {
	Install(ctx context.Context, ifaces []ifstore.Interface) []error
	Uninstall(ctx context.Context, ifaces []ifstore.Interface) []error
	// Replace moves the flows of one interface from an old record (other
	// number) to a new one in one bundle.
	Replace(ctx context.Context, old, new ifstore.Interface) error
}

// FlowChecker is implemented by Flows that can read back what the switch has.
type FlowChecker interface {
	CheckFlows(ctx context.Context, iface ifstore.Interface) error
}

// Addresses manages IP addresses. A nil Addresses in Config means that they
// come with the Request.
type Addresses interface {
	// Allocate reserves addresses for req.Key. Repeating it for the same key returns the same addresses.
	Allocate(ctx context.Context, req Request) (Allocation, error)
	// Release frees every address of key. It runs on every Delete, known or not; nothing to free: nil.
	Release(ctx context.Context, key ifstore.Key) error
	// Check verifies that the record's addresses are reserved for its key.
	Check(ctx context.Context, iface ifstore.Interface) error
}

// AddressSweeper is implemented by Addresses that can free all but the named
// reservations (CNI GC, reservations leaked by a crash).
type AddressSweeper interface {
	Keep(ctx context.Context, keys []ifstore.Key) (freed int, err error)
}
