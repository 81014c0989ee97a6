// Package masquerade gives what Pods send out of the cluster the node's own
// address, by one nftables table of ours. It speaks netlink and starts no process.
package masquerade
