// Package prepare makes a Windows node ready for the agent: the HNS network on
// the uplink, and Open vSwitch's extension in its switch. It is used by an
// operator (antrea-lite prepare-node) and by the agent when HNS has lost the
// network; never by an ADD. It starts no process.
package prepare
