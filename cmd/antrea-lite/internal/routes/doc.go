// Package routes keeps the node's routes to the Pods of other nodes: through the
// other node's address where nodes share a link (noEncap), or into the gateway
// where a tunnel takes them (encap). It works through netlink, touches only
// routes and neighbours that it made, known by their protocol number, and starts
// no process.
package routes
