// Package linux is the Linux half of podnet: it makes the cable between a
// container and the host out of a veth pair and learns the OpenFlow number of
// its port.
//
// Linker makes the pair with one netlink request, both MAC addresses chosen
// here and the container's end created inside its network namespace under its
// final name, so nothing is renamed or moved and udev never sees a device it
// might rewrite. Readiness waits in Begin until Open vSwitch has given the
// number, and afterwards reports every change that the port watches see.
//
// Nothing here starts a process. Code that must run inside a container's
// network namespace runs on a thread that is locked for it; the thread returns
// to the host's namespace or ends.
package linux
