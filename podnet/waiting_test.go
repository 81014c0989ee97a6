package podnet_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestAsyncAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		var timing []podnet.PortTiming
		cfg := w.AsyncConfig(t, async.Config{})
		cfg.Observer.Port = func(p podnet.PortTiming) { timing = append(timing, p) }
		n, stop := podnettest.Start(t, cfg)
		defer stop()
		iface := mustAdd(t, n, "c1")
		if iface.State != ifstore.StateWaiting || iface.Waiting == "" {
			t.Errorf("Add returned state %s, waiting for %q", iface.State, iface.Waiting)
		}
		if w.Flows.Len() != 0 {
			t.Error("flows without a number")
		}
		time.Sleep(12 * time.Second)
		w.Bridge.Slow(false)
		synctest.Wait()
		wantReady(t, w, n, "c1")
		if events := w.Events(); len(events) != 1 || events[0].Type != podnet.NetworkReady {
			t.Errorf("events %+v, want one NetworkReady", events)
		}
		if len(timing) != 1 || !timing[0].Waited || timing[0].Number != 12*time.Second || timing[0].Ready != 12*time.Second {
			t.Errorf("timing %+v, want 12 s", timing)
		}
		mustDelete(t, n, "c1")
		wantNothingLeft(t, w, n)
	})
}

// A port whose flows were never sent is deleted without asking the switch.
func TestDeleteOfAWaitingPortNeedsNoSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		mustAdd(t, n, "c1")
		mustAdd(t, n, "c2")
		w.Flows.Away(true)
		mustDelete(t, n, "c1")
		stop()
		// The same after a restart: the row says so.
		n, stop = podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		mustDelete(t, n, "c2")
		if calls := w.Flows.Calls(); len(calls) > 0 {
			t.Errorf("the switch was asked: %q", calls)
		}
		wantNothingLeft(t, w, n)
	})
}

// Many ports get their numbers at once. What has to be written down for each
// before its flows are sent is written down for all of them together: one after
// the other it would be the longest part of the wait.
func TestPortsThatComeTogetherAreNotedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ports, write = 20, 100 * time.Millisecond
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		for i := range ports {
			mustAdd(t, n, fmt.Sprintf("c%d", i))
		}
		w.Bridge.Before("SetExternalIDs", func(context.Context) error { time.Sleep(write); return nil })
		begun := time.Now()
		w.Bridge.Slow(false)
		for n.Waiting() > 0 {
			time.Sleep(write / 10)
		}
		if took := time.Since(begun); took > ports*write/4 {
			t.Errorf("%d ports became ready in %v, one write takes %v", ports, took, write)
		}
	})
}
