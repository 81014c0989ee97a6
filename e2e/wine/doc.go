// Package wine holds the scenarios of a Windows node, played on Linux: the
// Windows binaries of agent and plugin under Wine, the real hcsshim in them, the
// fake host network service behind that, and a real Open vSwitch on Linux, which
// they reach over TCP or over named pipes.
//
// docs/windows.md says what this covers and what needs a real Windows node.
package wine
