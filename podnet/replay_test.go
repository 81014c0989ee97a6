package podnet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// RC-1, RC-2: a replay begins while an Add waits for the session that only this
// replay can make ready.
func TestReplayInterruptsWhoWaitsForASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		mustAdd(t, n, "c1")
		w.Flows.Away(true)
		w.Flows.Lose()
		result := make(chan error, 2)
		go func() { _, err := n.Add(context.Background(), podnettest.NewRequest("c2")); result <- err }()
		go func() { result <- n.Delete(context.Background(), keyOf("c1")) }()
		time.Sleep(time.Minute)
		if err := n.Replay(t.Context(), func(ctx context.Context, ifaces []ifstore.Interface) error {
			if len(ifaces) != 0 {
				t.Errorf("replayed %v; c1 goes away, and c2's Add installs its flows itself", ifaces)
			}
			return w.Flows.Replay(ctx, ifaces)
		}); err != nil {
			t.Fatal(err)
		}
		w.Flows.Away(false)
		for range 2 {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		wantReady(t, w, n, "c2")
		mustDelete(t, n, "c2")
		wantNothingLeft(t, w, n)
	})
}

// A replay that fails leaves what it knows and is tried again.
func TestReplayFails(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	mustAdd(t, n, "c1")
	w.Flows.Before("Replay", boom)
	if err := n.Replay(t.Context(), w.Flows.Replay); !errors.Is(err, errBoom) {
		t.Errorf("Replay: %v", err)
	}
	w.Flows.Before("Replay", nil)
	if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
		t.Error(err)
	}
	wantReady(t, w, n, "c1")
	mustDelete(t, n, "c1")
	wantNothingLeft(t, w, n)
}

// The OpenFlow session is ready before anybody has read the bridge: the replay
// reads it, else it would delete the flows of every Pod.
func TestReplayBeforeReconcile(t *testing.T) {
	w := podnettest.NewWorld()
	first, stop := podnettest.Start(t, w.Config())
	mustAdd(t, first, "c1")
	stop()
	n, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
		t.Fatal(err)
	}
	wantReady(t, w, n, "c1")
	mustDelete(t, n, "c1")
	wantNothingLeft(t, w, n)
}
