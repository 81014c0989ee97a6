// Package vswitch manages the ports of one Open vSwitch bridge through OVSDB
// (RFC 7047, and ovsdb-server(7) for what Open vSwitch adds to it).
//
// A Client keeps a copy of the rows it needs, fed by one monitor. Reads come
// from that copy and wait while it is not current; changes that wait at the
// same moment share a transaction, and each still gets its own result. A port
// is known by the UUID of its Interface row (podnet.PortKey.Gen), which the
// client chooses before it sends the insert: after a connection was lost in
// the middle of a transaction the row tells by itself whether it was applied.
//
// Wire types, schema, row mapping and update arithmetic are libovsdb's. Its
// client is not used: a request into a silent connection holds a lock that
// its inactivity probe and every later request need, whatever their contexts
// say.
package vswitch
