// Package nodenet joins the Pods of this node to those of the others and to the
// world: the host's routes to other nodes' ranges, by their addresses or into the
// tunnel, and the translation of what leaves the cluster. It is level-triggered:
// whatever woke it, it makes the kernel equal to the latest list of nodes.
package nodenet
