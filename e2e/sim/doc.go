// Package sim throws random events at the real podnet.Network and its real
// readiness backends, in virtual time, and compares what comes of it with a
// small model that knows nothing of their insides.
//
// One run is a [Schedule]: a list of events with the pauses between them, made
// from a seed or read from a file. It plays in a testing/synctest bubble, so an
// hour of waiting costs microseconds. Three parts act:
//
//   - the node: Open vSwitch, devices and addresses, played by the fakes of
//     podnettest, with faults, latencies and numbers that move (node.go,
//     vswitchd.go). The OpenFlow side is either those fakes too, or the real
//     ofclient and podflows against the switch of oftest (openflow.go).
//   - the agent: the real code, which may be restarted or killed (agent.go).
//   - the runtime: ADD and DEL calls with deadlines, repeated as a kubelet
//     does (runtime.go).
//
// The model (model.go) says what must be true: always (no flow on a number that
// no port can have, none on a number that is freed), and whenever the faults are
// over and some virtual time has passed (exactly the flows of the ports that
// have a number, nothing left of what was deleted, the right events).
//
// A schedule that fails is made smaller by dropping events for as long as it
// still fails (shrink.go), and printed as JSON. Put into testdata, it is a test.
package sim
