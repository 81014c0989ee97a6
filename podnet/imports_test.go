package podnet_test

import (
	"go/build"
	"strings"
	"testing"
)

// The core has no operating system, no Open vSwitch library and no Kubernetes
// in it: it imports ifstore, klog and the standard library.
func TestImportsOfTheCore(t *testing.T) {
	allowed := map[string]bool{
		"github.com/antrea-lite/podnet/ifstore": true,
		"k8s.io/klog/v2":                        true,
	}
	for dir, extra := range map[string][]string{".": nil, "../ifstore": nil} {
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(pkg.IgnoredGoFiles) > 0 {
			t.Errorf("%s: files for one platform only: %q", dir, pkg.IgnoredGoFiles)
		}
		for _, path := range append(pkg.Imports, extra...) {
			if standard := !strings.Contains(strings.Split(path, "/")[0], "."); !standard && !allowed[path] {
				t.Errorf("%s imports %s", dir, path)
			}
		}
	}
}
