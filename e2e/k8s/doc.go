// Package k8s runs antrea-lite in a real Kubernetes: scenarios against a cluster
// that package cluster makes and package build builds. README.md tells how to
// use both by hand.
package k8s
