// Package socket listens where the CNI plugin finds the agent: on a unix socket
// that only its owner may open and that neither a crash nor a stranger's file gets
// in the way of, or on a named pipe of Windows that only administrators and SYSTEM
// may open.
package socket
