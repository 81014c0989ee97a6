// Package agent puts the node agent together: a list of parts that run until
// the first of them fails or the agent is told to stop.
//
// # Start
//
// The CNI socket and the health page answer from the first moment, with "try
// again later" and reasons. Then, each step as soon as the one before allows:
// OVSDB, the bridge, the gateway's port, the interfaces of the bridge, OpenFlow
// with its replay, the gateway's addresses and kernel settings, and at last the
// CNI configuration file. Open vSwitch that is not there is waited for; what
// waiting cannot cure (a bridge of another datapath type, an Open vSwitch that
// is too old, ports of another manager) ends the agent with one message.
//
// # Stop
//
// The CNI server stops first, while Open vSwitch can still be reached: ADDs
// under way are undone, DELs get a few seconds. Flows, ports and the gateway
// stay; Pods do not notice that the agent is gone.
//
// # flow-restore-wait is not used
//
// The bridge fails secure, so between a start of ovs-vswitchd and the replay
// packets are dropped and never handled by a flow that is not ours, which is
// what the setting is for. It would need somebody to set it before every start
// of ovs-vswitchd, has no effect on the userspace datapath, and whoever fails to
// take it back stops all forwarding.
package agent
