// Package interop holds the tests that set the wait of the Windows backend
// against a real Open vSwitch, on Linux: a port whose type is switched from ""
// to "internal" gets a device and a number there as it does on Windows. Only the
// list of the host's interfaces is made up. It is apart from package windows so
// that the tests of that one need neither root nor Linux.
package interop
