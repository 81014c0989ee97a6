package windows

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// Nobody tells that a Pod was deleted while it waited.
func TestWaitsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVNICWaits(5*time.Second, time.Second, time.Minute)
		look := func(name string) { w.looked([]podnet.PortKey{{Name: name, Gen: "g"}}, make([]error, 1)) }
		for n := range 1000 {
			look(fmt.Sprint("port", n))
		}
		time.Sleep(9 * time.Minute) // longer than any pause between two attempts
		look("port0")
		if len(w.waits) != 1000 {
			t.Errorf("%d waits, want 1000", len(w.waits))
		}
		time.Sleep(2 * time.Minute)
		look("port0")
		if len(w.waits) != 1 {
			t.Errorf("%d waits, want 1", len(w.waits))
		}
	})
}
