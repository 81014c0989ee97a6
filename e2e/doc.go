// Package e2e holds the scenarios: ordinary Go tests that drive the built
// binaries against a real Open vSwitch, as a container runtime and an operator
// would. The same compiled test runs here on the userspace datapath and in a
// QEMU guest on the kernel datapath (e2e/kernelvm).
//
//	make e2e RUN=TestRestart
//	make e2e-kernel RUN=TestRestart
package e2e
