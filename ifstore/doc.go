// Package ifstore keeps the interfaces that podnet plugged into Open vSwitch,
// indexed by every name the rest of the system knows them by: the host
// interface's name, (container id, interface name), Pod, IP address and
// OpenFlow port number.
//
// The store is memory only. What must outlive the process is in the
// external_ids of the OVS ports (see package podnet).
package ifstore
