//go:build tools

package conformance

import (
	// Runs the suite in several processes, as the upstream project does.
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	// The image that the upstream tests use for nearly everything.
	_ "k8s.io/kubernetes/test/images/agnhost"
	// A server that sends packets out of its connections' windows.
	_ "k8s.io/kubernetes/test/images/regression-issue-74839"
)
