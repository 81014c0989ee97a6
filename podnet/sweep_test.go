package podnet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// CN-19, CN-21: the container is gone and nobody deleted the interface.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		for _, id := range []string{"alive", "dead", "flicker"} {
			mustAdd(t, n, id)
		}
		if _, err := w.Addresses.Allocate(t.Context(), podnettest.NewRequest("leaked")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the look at the start of Run is over
		w.Linker.Kill("dead")
		time.Sleep(time.Minute + time.Second) // first observation
		if len(n.Interfaces()) != 3 {
			t.Errorf("swept after one observation")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ids := fmt.Sprint(w.Addresses.Leases()); len(n.Interfaces()) != 2 || ids != "[alive/eth0 flicker/eth0]" {
			t.Errorf("after two observations: %d interfaces, leases %s", len(n.Interfaces()), ids)
		}
		// Waiting alone is no reason, however long; nor is a probe that fails.
		w.Linker.Before("Alive", boom)
		w.Linker.Kill("flicker")
		time.Sleep(time.Hour)
		if len(n.Interfaces()) != 2 {
			t.Errorf("swept for waiting")
		}
	})
}

// An allocation that no store knows yet survives the sweep of addresses.
func TestSweepSparesAddsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		w.Linker.Before("Link", func(context.Context) error { time.Sleep(5 * time.Minute); return nil })
		iface := mustAdd(t, n, "c1")
		if leases := w.Addresses.Leases(); !slices.Equal(leases, []string{iface.Key.String()}) {
			t.Errorf("leases %q", leases)
		}
	})
}
