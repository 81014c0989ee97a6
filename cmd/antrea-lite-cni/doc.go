// antrea-lite-cni is the CNI plugin of antrea-lite: it passes ADD, CHECK, DEL,
// GC and STATUS to the node agent over a unix socket and words the answer in
// the caller's CNI version. It knows nothing of Kubernetes' API, keeps no state
// and is made to start fast.
//
// # Network configuration
//
//	{
//	  "cniVersion": "1.1.0",                       0.3.1, 0.4.0, 1.0.0 or 1.1.0
//	  "name": "podnet",
//	  "type": "antrea-lite-cni",
//	  "agentSocket": "/run/antrea-lite/cni.sock",  default as shown
//	  "timeoutSeconds": 90,                        how long one call may take; default 90
//	  "vlan": 0,                                   access VLAN 1 to 4094; 0: untagged
//	  "mtu": 0,                                    0: the agent's
//	  "ipam": {"type": "antrea-lite"},
//	  "capabilities": {"ips": true, "mac": true},
//	  "dns": {...}                                 passed on to the result
//	}
//
// # Addresses
//
// No "ipam" key, type "antrea-lite", or type "host-local" without ranges of its
// own: the agent's ranges. "ipam": {} or type "none": a layer-2 interface
// without addresses. Any other type, and "host-local" with a subnet or ranges:
// that plugin, run by this one.
//
// Addresses and a MAC can be asked for by the runtimeConfig keys "ips" and
// "mac", by "args": {"cni": {"ips": [...], "mac": "..."}}, or by IP and MAC in
// CNI_ARGS; the first of these that is present counts.
package main
