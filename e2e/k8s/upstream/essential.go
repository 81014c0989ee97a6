package upstream

// Essential are the tests that every change has to pass: the network between
// Pods and between nodes and Pods, and what depends on the network of Services:
// endpoints on all nodes, a Pod that reaches itself, the client's own address,
// ports of nodes, and connections that stay with one endpoint.
func Essential() []string {
	return []string{
		"[sig-network] Networking Granular Checks: Pods should function for intra-pod communication: http [Conformance] [NodeConformance]",
		"[sig-network] Networking Granular Checks: Pods should function for intra-pod communication: udp [Conformance] [NodeConformance]",
		"[sig-network] Networking Granular Checks: Pods should function for node-pod communication: http [LinuxOnly] [Conformance] [NodeConformance]",
		"[sig-network] Networking Granular Checks: Pods should function for node-pod communication: udp [LinuxOnly] [Conformance] [NodeConformance]",
		"[sig-network] Services should serve a basic endpoint from pods [Conformance]",
		"[sig-network] Services should allow pods to hairpin back to themselves through services",
		"[sig-network] Services should preserve source pod IP for traffic thru service cluster IP [LinuxOnly]",
		"[sig-network] Services should be able to change the type from ExternalName to NodePort [Conformance]",
		"[sig-network] Services should have session affinity work for NodePort service [LinuxOnly] [Conformance]",
	}
}
