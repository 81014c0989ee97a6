package podnet_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// GC counts from its call: an Add may begin and end while it waits for the
// bridge to be read, and the caller's list cannot name that interface.
func TestGCWaitsForTheBridgeLongerThanAnAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Before("Ports", func(ctx context.Context) error { return pause(ctx, time.Second) })
		n, err := podnet.New(w.Config())
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		// The second reads the bridge once more, while GC stands in line behind it.
		for _, call := range []func() error{
			func() error { return n.Reconcile(t.Context()) },
			func() error { return n.Reconcile(t.Context()) },
			func() error { return n.GC(t.Context(), nil) },
		} {
			calls.Go(func() {
				if err := call(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		mustAdd(t, n, "c1")
		calls.Wait()
		wantReady(t, w, n, "c1")
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
