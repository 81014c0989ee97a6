// Package lab is the equipment that the scenarios, the demo and the benchmark
// share: a node (private Open vSwitch, agent process, plugin), Pods that are
// network namespaces, and instruments written in Go (ping, checksummed TCP,
// raw frames, listings of what is left), so that nothing has to be installed
// in the guest or on the machine.
//
// It reaches the product only as a container runtime or an operator does: by
// the plugin's environment and stdin, the agent's command line and its sockets.
//
// Every process that uses it calls nettest.Main first.
package lab
