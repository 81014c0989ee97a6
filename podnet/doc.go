// Package podnet plugs containers into an Open vSwitch bridge and keeps them
// plugged in.
//
// A Pod has network only when three things are true: its interface exists,
// Open vSwitch has given the interface an OpenFlow port number, and flows for
// that number are installed. The number is the hard one. On Linux it comes
// within milliseconds; on Windows, and wherever ovs-vswitchd starves, it comes
// seconds or minutes after the runtime was told that all is well; and it may
// change or vanish later. This package never gives up on a number and never
// guesses one: it looks at the latest state as often as it takes and makes the
// flows equal to it. Until then the interface is "waiting", and after
// Config.NotReadyAfter its Pod carries an event that names the cause.
//
// # Parts
//
// A [Network] has no operating system, no Open vSwitch library and no
// Kubernetes in it. It is made of parts that are handed in through [Config]:
//
//   - [Linker] makes the cable between container and host. It may also be an
//     [Announcer], a [Prober] and an [OrphanUnlinker].
//   - [Bridge] is OVSDB: ports with their external_ids, and which number each
//     has right now.
//   - [PortReadiness] learns that a number came or changed. Its Begin answers at
//     once (Linux) or promises to call back (package async). It may also be a
//     [Resumer].
//   - [Flows] installs and removes the flows of interfaces. It may also be a
//     [FlowChecker].
//   - [Addresses], optional, manages IP addresses. It may also be an
//     [AddressSweeper].
//
// An embedder replaces any of them: its own flows instead of podflows, its own
// address manager, a port watch on another OpenFlow library that calls
// [Network.Sync] with the names it hears. Package podnettest has a fake of each
// and the tests that a Linker and a PortReadiness have to pass. The Example of
// [Network] shows the whole.
//
// # Life of an interface
//
// The record of every interface is in an [ifstore.Store], under the container's
// id and the interface's name in it. A Pod's name is no identity: two sandboxes
// of one Pod may exist side by side. The state is explicit:
//
//	           Link           AddPort             flows confirmed
//	(nothing) ------> linked ---------> waiting -----------------> ready
//	                     |                 | <----------------------- |
//	                     |                 |   the port lost its number |
//	                     v                 v                          v
//	                     +--------> withdrawing <---------------------+
//	                                       |  flows, port, cable gone
//	                                       v
//	                                   (nothing)
//
// A record's OFPort is the number its flows use or may use. It is not 0 in state
// ready, and it goes back to 0 only when the switch confirmed that no flow is
// left. Numbers outside 1..0xfeff never reach a flow.
//
// Everything is taken down in the order flows, port, cable, record, addresses,
// so that nothing is free for others while something that uses it stands. What
// cannot be taken down now stays in state withdrawing, and [Network.Run] goes on
// with it. The caller of [Network.Delete] is told to try again and joins that
// removal. The state is also noted in the port's external_ids, so a restart goes
// on too.
//
// # What outlives the process
//
// Nothing but the external_ids of the ports, and the leases of an address
// manager. [Network.Reconcile] rebuilds the store from them
// ([EncodeExternalIDs]). Only podnet-owner proves that a port is ours; all other
// ports are left alone.
//
// Flows are not read back; they are replayed. The OpenFlow client calls
// [Network.Replay] for every new session before the session serves anything
// else: the network hands over every interface whose flows should stand, with
// its number looked up anew.
//
// # Locks
//
// All waiting for locks ends with the caller's context. The order is
//
//  1. the Pod (namespace and name): Add only. Two sandboxes of one Pod are made
//     one after the other, and the newer ends the Add of the older.
//  2. the container: Add, Delete, Check, GC and sweeps wait for it. Sync never
//     does: it tries, and asks for a retry with [ErrBusy] when it is held. The
//     holder may be waiting for the very number that Sync brings. And it gives
//     way when somebody waits for a container that it holds. An operation that
//     needs a second container's lock (a number that moved from one interface to
//     another) tries it in the same way.
//  3. the replay lock: shared by whoever changes flows, alone for a replay. A
//     replay does not wait for sharers to finish; it ends their contexts, and
//     they begin their flow changes anew when it is over. They may be waiting for
//     a session that only this replay makes ready.
//
// Beside them, allocation of addresses shares a lock that the sweep of addresses
// takes alone, and Network.mu is a leaf that is never held across a call.
// A record's OFPort and the states waiting and ready change only under the
// replay lock (shared, together with the container's lock, or alone); state
// withdrawing is set under the container's lock and is final.
//
// # Undo
//
// An Add that fails, is cancelled or panics in a part takes back what it made,
// last step first, under a context of its own, with the container locked. It
// stops where a step cannot be taken back now and leaves the rest to Run:
// going on would free a number while flows may stand.
//
// # Errors
//
// Add, Delete and Check return *[OpError]: whose operation, which step, after
// how long, and the cause. Callers decide on the sentinels: [ErrBadRequest] will
// never succeed as it is, [ErrTryAgain] is worth a repeat, [ErrOvertaken] means
// that nobody wants the result any more, [ErrNotFound] is Check's.
package podnet
