// Package networks has the ways to connect the Pods of a cluster: antrea-lite,
// and the bridge plugin as a known good one against which the harness is proved
// and times are compared.
package networks
