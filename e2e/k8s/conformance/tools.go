//go:build tools

package conformance

// The image that the upstream tests use for nearly everything.
import _ "k8s.io/kubernetes/test/images/agnhost"
