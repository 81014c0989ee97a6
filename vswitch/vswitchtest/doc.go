// Package vswitchtest starts private Open vSwitch instances for tests, demos
// and benchmarks: their own database, sockets and log files in a directory of
// their own, never the system's.
package vswitchtest
