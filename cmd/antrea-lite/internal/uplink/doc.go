// Package uplink moves the node's network device behind Open vSwitch and back. On
// the userspace datapath the packets of a tunnel leave only by a bridge that holds
// the node's address: the device becomes a port of a bridge of its own, and the
// bridge's interface takes over the device's link-layer address, MTU, addresses
// and routes.
//
// The node is reachable at every moment but one: while ovs-vswitchd is down nobody
// serves that interface, and then the device gets everything back. What it had is
// in a file, written before anything is touched and kept until the device has
// it again for good; it lies in the state directory, which dies with the boot, as
// a device that boots gets its addresses anew. Every step looks before it acts, so
// that a process which was killed between any two is followed by one that goes on.
package uplink
