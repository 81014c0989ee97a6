// Package kube is all that the agent has to do with the Kubernetes API: the Pod
// ranges of its Node, the Pods on it, the other Nodes, and what the owner of a
// Pod gets to see (events and a Pod condition).
//
// Nothing here is asked in the way of an ADD or a DEL: while the API server is
// away Pods are plugged in and out as ever, and everything here catches up when
// it is back. What is reported is the latest state, never a history.
package kube
