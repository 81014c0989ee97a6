package k8s

import (
	"bytes"
	"testing"

	"github.com/antrea-lite/podnet/e2e/k8s/build"
	"github.com/antrea-lite/podnet/e2e/k8s/upstream"
)

// TestUpstream runs the upstream tests that every change has to pass; make
// conformance runs all of them.
func TestUpstream(t *testing.T) {
	w := newWorld(t)
	w.apply("e2e/k8s/manifests/coredns.yaml")
	_, err := w.Kubectl(w.ctx, "rollout", "status", "--timeout=80s", "-n", "kube-system", "deployment/coredns")
	w.must(err)
	dir, images, err := (&build.Builder{Root: options.root, Progress: note}).Upstream(w.ctx, false)
	w.must(err)
	var output bytes.Buffer
	suite := upstream.Suite{Dir: dir, Images: images, Processes: 4, Output: &output}
	names := upstream.Essential()
	results, err := suite.Run(w.ctx, w.Cluster, upstream.Named(names...))
	if err == nil {
		err = results.Check(names...)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	for _, r := range results.Of(upstream.Passed) {
		t.Logf("%5.1f s  %s", r.Time.Seconds(), r.Name)
	}
}
