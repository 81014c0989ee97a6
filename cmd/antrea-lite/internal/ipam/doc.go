// Package ipam gives Pods addresses of the node's ranges. The choice of the next
// address and the lease files are containernetworking's host-local (its
// allocator and disk packages); around them this package keeps an index in
// memory, one lock for the life of the process, and messages that help.
//
// Leases die with the boot, because Pods do: a stamp with the kernel's boot id
// makes those of an earlier one void wherever the directory is. So they need not
// be flushed to the disk; leases without a stamp are.
// Lease files are host-local's: one file for each address, named by it, holding
// container id and interface name.
package ipam
