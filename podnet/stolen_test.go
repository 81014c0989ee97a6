package podnet_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// The number was another interface's, and somebody is at work on that one: the
// Add waits for it.
func TestStolenNumberOfABusyInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, err := podnet.New(w.Config())
		if err != nil {
			t.Fatal(err)
		}
		old := mustAdd(t, n, "old")
		w.Linker.Before("Check", func(context.Context) error { time.Sleep(3 * time.Second); return nil })
		checked := make(chan error, 1)
		go func() { checked <- n.Check(context.Background(), old.Key) }()
		synctest.Wait()
		w.Bridge.After("AddPort", func(context.Context) error {
			w.Bridge.SetOFPort(old.Name, 0, "")
			w.Bridge.SetOFPort(podnettest.HostName(keyOf("new")), int32(old.OFPort), "")
			return nil
		})
		begun := time.Now()
		mustAdd(t, n, "new")
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the Add took %v, want it to wait for the check", took)
		}
		wantReady(t, w, n, "new")
		if on := w.Flows.On(old.OFPort); !slices.Equal(on, []ifstore.Key{keyOf("new")}) {
			t.Errorf("flows on the number: %v", on)
		}
		<-checked
	})
}
