// Package oftest is an OpenFlow 1.5 switch in memory, for tests of whatever
// uses ofclient. It models what Open vSwitch was seen to do: management
// connections get no PORT_STATUS before SET_ASYNC or SET_CONFIG, an add that
// fails does not spoil its bundle, an idle bundle dies after ten seconds and a
// later add opens a new one in silence, flow changes outside a bundle outlive their
// session. Faults make it misbehave.
//
// Over Dial (net.Pipe) it works inside a testing/synctest bubble; over Serve
// it listens on a real socket.
package oftest
