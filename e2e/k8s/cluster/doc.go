// Package cluster runs a real Kubernetes cluster on one machine: a control plane
// and nodes, each in network, mount, PID, UTS and IPC namespaces and in cgroups
// of its own, so that a node finds everything at the usual paths (/etc/cni/net.d,
// /run/containerd, /var/lib/kubelet) and the machine sees none of it.
//
//	fabric 172.31.0.0/24, fd00:31::/64: a bridge in the control plane's namespace
//	  .1         control plane: etcd, API server, controller manager, scheduler
//	  .11, .12   nodes n1, n2, ...: containerd, kubelet, kube-proxy (nftables)
//	Services     10.96.0.0/16, fd00:96::/112      DNS 10.96.0.10
//	Pods         10.244.0.0/16, fd00:244::/56     a /24 and a /64 for each node
//
// There is no CNI plugin in it: the nodes become Ready once one is installed.
// The control plane's namespace is no node; to Pods it is the outside world.
//
// A program that uses it calls Main first: the program itself, started again,
// is the process 1 of those namespaces. It needs root.
package cluster
