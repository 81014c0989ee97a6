package podnet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// OF-1: NotReady at 30 s, once, with the cause; Ready soon after the number.
func TestNotReadyAndReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		begun := time.Now()
		mustAdd(t, n, "c1")
		name := podnettest.HostName(keyOf("c1"))
		time.Sleep(29 * time.Second)
		w.Bridge.SetOFPort(name, -1, "could not open network device (No such device)")
		synctest.Wait()
		if events := w.Events(); len(events) != 0 {
			t.Errorf("told early: %+v", events)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		events := w.Events()
		if len(events) != 1 || events[0].Type != podnet.NetworkNotReady || events[0].Time.Sub(begun) != 30*time.Second {
			t.Fatalf("events %+v, want NetworkNotReady at 30 s", events)
		}
		if !strings.Contains(events[0].Message, "No such device") || events[0].Pod.Name != "pod-c1" {
			t.Errorf("event %+v does not name the cause", events[0])
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if events := w.Events(); len(events) != 1 {
			t.Errorf("%d events after an hour with one cause, want 1", len(events))
		}
		// Another cause is told, but not before the rate allows it.
		w.Bridge.SetOFPort(name, -1, "File exists")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if events := w.Events(); len(events) != 2 || !strings.Contains(events[1].Message, "File exists") {
			t.Errorf("events %+v, want a second one with the new cause", events)
		}
		w.Bridge.SetOFPort(name, 5, "")
		time.Sleep(time.Second)
		synctest.Wait()
		wantReady(t, w, n, "c1")
		if events := w.Events(); len(events) != 3 || events[2].Type != podnet.NetworkReady {
			t.Errorf("events %+v, want NetworkReady at last", events)
		}
		// Late reports of a wait that is over change nothing.
		n.Late(t.Context(), podnet.PortKey{Name: name}, errBoom)
		wantReady(t, w, n, "c1")
		if events := w.Events(); len(events) != 3 {
			t.Errorf("NotReady after Ready: %+v", events)
		}
	})
}

// A Sync hangs in a switch that is away. Whoever wants the container is not
// held up by it: flows that were never sent need no switch to be deleted.
func TestSyncGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Flows.Away(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		mustAdd(t, n, "c1")
		mustAdd(t, n, "c2")
		time.Sleep(31 * time.Second)
		synctest.Wait() // the Sync hangs
		events := w.Events()
		if len(events) != 2 || events[0].Type != podnet.NetworkNotReady || !strings.Contains(events[0].Message, "the switch to confirm the flows") {
			t.Errorf("events %+v, want two NetworkNotReady although the Sync has not returned", events)
		}
		begun := time.Now()
		if again := mustAdd(t, n, "c1"); again.State != ifstore.StateWaiting {
			t.Errorf("repeated Add: %s", again.State)
		}
		if err := n.Check(t.Context(), keyOf("c1")); err == nil {
			t.Error("Check of an interface without flows: nil")
		}
		mustDelete(t, n, "c1")
		if took := time.Since(begun); took != 0 {
			t.Errorf("they waited %v for the Sync", took)
		}
		w.Flows.Away(false)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		wantReady(t, w, n, "c2")
		mustDelete(t, n, "c2")
		wantNothingLeft(t, w, n)
	})
}

// SC-7: 300 ports without numbers; one never gets one and delays nobody.
func TestManyPortsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		for i := range 300 {
			mustAdd(t, n, fmt.Sprint("c", i))
		}
		time.Sleep(40 * time.Second)
		never := podnettest.HostName(keyOf("c7"))
		w.Bridge.SetOFPort(never, -1, "no such device")
		w.Bridge.Slow(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if waiting := n.Waiting(); waiting != 1 || w.Flows.Len() != 299 {
			t.Errorf("%d wait, %d have flows; want 1 and 299", waiting, w.Flows.Len())
		}
	})
}

// A Delete that has begun ends the telling, though its rest may take long.
func TestNoEventOnceDeleteHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		waiting := mustAdd(t, n, "c1")
		w.Bridge.Away(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Delete(ctx, keyOf("c1")); !errors.Is(err, podnet.ErrTryAgain) {
			t.Fatalf("Delete: %v, want one that goes on", err)
		}
		time.Sleep(40 * time.Second)
		n.TellIfLate(t.Context(), waiting)
		if events := w.Events(); len(events) != 0 {
			t.Errorf("events %+v, want none", events)
		}
		w.Bridge.Away(false)
		time.Sleep(time.Minute)
	})
}

// A Pod that an earlier process told NetworkNotReady hears NetworkReady of the
// next one, also when its port had flows once and its row is not marked waiting.
func TestReadyIsToldAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		mustAdd(t, n, "c1")
		mustAdd(t, n, "c2")
		lost := podnettest.HostName(keyOf("c1"))
		w.Bridge.SetOFPort(lost, -1, "could not open network device (No such device)")
		time.Sleep(50 * time.Second)
		stop()
		if events := w.Events(); len(events) != 1 || events[0].Type != podnet.NetworkNotReady {
			t.Fatalf("events %+v, want NetworkNotReady of c1", events)
		}
		for range 2 { // the second restart finds nothing more to tell
			n, stop = podnettest.Start(t, w.Config())
			synctest.Wait()
			if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
				t.Fatal(err)
			}
			w.Bridge.SetOFPort(lost, 7, "")
			time.Sleep(20 * time.Second)
			wantReady(t, w, n, "c1")
			if events := w.Events(); len(events) != 2 || events[1].Type != podnet.NetworkReady || events[1].Key != keyOf("c1") {
				t.Errorf("events %+v, want NetworkReady of c1 once, after NetworkNotReady", events)
			}
			stop()
		}
	})
}
