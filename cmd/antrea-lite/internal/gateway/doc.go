// Package gateway keeps the node's own interface on the bridge as the
// configuration has it: up, with its MTU, exactly its addresses (link-local ones
// stay) and its kernel settings. On Linux it works through netlink and /proc/sys
// and starts no process. On Windows it compares and changes nothing.
package gateway
