// Package podnettest helps to test what is built on podnet.
//
// [World] is a node in memory: a bridge, a switch, cables, addresses and a
// readiness backend, each with knobs ([Faults]) to make any call fail, hang or
// panic, and with a list of what is left over. An embedder can put its own part
// in the place of any of them.
//
// [TestReadiness] and [TestLinker] are the tests that every implementation of
// podnet.PortReadiness and podnet.Linker has to pass.
package podnettest
