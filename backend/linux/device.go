package linux

import "github.com/antrea-lite/podnet/ifstore"

// What Extra of a record says about the host's end. Nothing: it is a veth that
// Link made.
const (
	extraDevice = "host-end"
	hostDevice  = "device" // others make and delete it
)

// isDevice reports whether the host's end of iface is a device of others.
func isDevice(iface ifstore.Interface) bool { return iface.Extra[extraDevice] == hostDevice }
