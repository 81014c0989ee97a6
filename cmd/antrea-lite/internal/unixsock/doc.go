// Package unixsock listens on unix sockets that only their owner may open and
// that neither a crash nor a stranger's file gets in the way of.
package unixsock
