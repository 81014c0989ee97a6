package k8s

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// quiet are the worlds of scenarios that disturb nobody and measure nothing: they spend
// most of their time waiting and run beside each other. The nodes have to look as
// before the first of them when the last one ends.
var quiet struct {
	sync.Mutex
	worlds int
	before []lab.Listing
}

// newQuietWorld makes a namespace for a test that runs beside others.
func newQuietWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{Cluster: shared, t: t, ctx: t.Context()}
	quiet.Lock()
	defer quiet.Unlock()
	if quiet.worlds == 0 {
		quiet.before = w.states()
	}
	quiet.worlds++
	t.Cleanup(func() {
		quiet.Lock()
		defer quiet.Unlock()
		if quiet.worlds--; quiet.worlds == 0 {
			w.lookAgain("the nodes look as before", quiet.before)
		}
	})
	w.makeNamespace(func() {
		w.until("the Pods are gone", func() error {
			list, err := w.Client().CoreV1().Pods(w.namespace).List(w.ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) > 0 {
				err = fmt.Errorf("%d are there", len(list.Items))
			}
			return err
		})
	})
	return w
}
