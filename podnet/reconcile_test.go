package podnet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// Restart with interfaces in every state. The record comes back whole; flows
// come with the first replay, without a number nothing is guessed.
func TestRestart(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(w *podnettest.World, iface ifstore.Interface) // between the two processes
		ready  bool                                               // after the replay
		after  func(w *podnettest.World, iface ifstore.Interface) // makes it ready
	}{
		{name: "ready", before: func(*podnettest.World, ifstore.Interface) {}, ready: true},
		{name: "switch restarted", before: func(w *podnettest.World, _ ifstore.Interface) { w.Flows.Lose() }, ready: true},
		{name: "number changed", before: func(w *podnettest.World, i ifstore.Interface) { w.Bridge.SetOFPort(i.Name, 99, "") }, ready: true},
		{
			name:   "number unset",
			before: func(w *podnettest.World, i ifstore.Interface) { w.Bridge.SetOFPort(i.Name, 0, "") },
			after:  func(w *podnettest.World, i ifstore.Interface) { w.Bridge.SetOFPort(i.Name, 7, "") },
		},
		{
			name: "device missing",
			before: func(w *podnettest.World, i ifstore.Interface) {
				w.Bridge.SetOFPort(i.Name, -1, "could not open network device")
			},
			after: func(w *podnettest.World, i ifstore.Interface) { w.Bridge.SetOFPort(i.Name, 7, "") },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := podnettest.NewWorld()
				n, stop := podnettest.Start(t, w.Config())
				req := podnettest.NewRequest("c1")
				req.VLAN, req.MTU = 10, 1400
				old, err := n.Add(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				stop()
				test.before(w, old)
				w.Flows.Away(true)

				n, stop = podnettest.Start(t, w.Config())
				defer stop()
				synctest.Wait()
				got := get(t, n, "c1")
				if got.State != ifstore.StateWaiting {
					t.Errorf("state %s before the first replay, want waiting", got.State)
				}
				old.State, old.Waiting, old.OFPort = got.State, got.Waiting, got.OFPort
				if diff := cmp.Diff(old, got, compareNetip...); diff != "" {
					t.Errorf("record (-before +after):\n%s", diff)
				}
				if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
					t.Fatal(err)
				}
				w.Flows.Away(false)
				if test.ready {
					wantReady(t, w, n, "c1")
				} else {
					if w.Flows.Len() != 0 {
						t.Error("flows without a number")
					}
					time.Sleep(25 * time.Second)
					test.after(w, old)
					time.Sleep(6 * time.Second)
					synctest.Wait()
					wantReady(t, w, n, "c1")
				}
				if events := w.Events(); len(events) != 0 {
					t.Errorf("events %+v; nobody had to wait for 30 s", events)
				}
				if err := n.Check(t.Context(), keyOf("c1")); err != nil {
					t.Errorf("Check: %v", err)
				}
				again, err := n.Add(t.Context(), req)
				if err != nil || again.Gen != old.Gen {
					t.Errorf("repeated Add after the restart: %+v %v", again, err)
				}
				mustDelete(t, n, "c1")
				wantNothingLeft(t, w, n)
			})
		})
	}
}

// A restart while the switch still carries flows under numbers that nobody
// remembers: Delete waits for the replay that removes them.
func TestRestartDeleteBeforeTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Freed = nil
		n, stop := podnettest.Start(t, w.Config())
		iface := mustAdd(t, n, "c1")
		stop()
		w.Bridge.SetOFPort(iface.Name, -1, "no such device")
		n, stop = podnettest.Start(t, w.Config())
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := n.Delete(ctx, iface.Key); !errors.Is(err, podnet.ErrTryAgain) {
			t.Fatalf("Delete: %v, want ErrTryAgain until flows of the earlier run are gone", err)
		}
		if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantNothingLeft(t, w, n)
	})
}

// A removal that was under way when the process ended is resumed.
func TestRestartResumesRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		iface := mustAdd(t, n, "c1")
		w.Flows.Away(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Delete(ctx, iface.Key); !errors.Is(err, podnet.ErrTryAgain) {
			t.Fatal(err)
		}
		stop()

		n, stop = podnettest.Start(t, w.Config())
		defer stop()
		synctest.Wait()
		if got := get(t, n, "c1"); got.State != ifstore.StateWithdrawing {
			t.Errorf("state %s, want withdrawing", got.State)
		}
		// A replay does not bring its flows back.
		var replayed []ifstore.Interface
		if err := n.Replay(t.Context(), func(_ context.Context, ifaces []ifstore.Interface) error {
			replayed = ifaces
			return nil
		}); err != nil || len(replayed) > 0 {
			t.Errorf("replayed %v, %v", replayed, err)
		}
		w.Flows.Away(false)
		synctest.Wait()
		wantNothingLeft(t, w, n)
	})
}

// RS-8: asynchronous, killed between the port and its number.
func TestRestartTakesUpPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		mustAdd(t, n, "c1")
		stop()
		var live atomic.Bool
		n, stop = podnettest.Start(t, w.AsyncConfig(t, async.Config{
			Accept: async.AcceptLive,
			Ports:  func(string) (async.PortState, bool) { return async.PortState{Number: 1, Live: live.Load()}, true },
		}))
		defer stop()
		w.Bridge.Slow(false)
		if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if w.Flows.Len() != 0 {
			t.Error("first flows went in although the backend did not accept the port")
		}
		live.Store(true)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		wantReady(t, w, n, "c1")
	})
}

// RS-11, and ports that are not ours.
func TestReconcileSkipsWhatItCannotRead(t *testing.T) {
	w := podnettest.NewWorld()
	ours := map[string]string{"podnet-owner": "podnet", "antrea-type": "container", "container-id": "c1"}
	for name, ids := range map[string]map[string]string{
		"nothing": nil,
		"tunnel":  {"antrea-type": "tunnel"},
		"antrea":  {"antrea-type": "container", "container-id": "c9", "attached-mac": "02:00:00:00:00:01"},
		"other":   {"antrea-type": "container", "container-id": "c8", "podnet-owner": "somebody"},
		"unknown": {"antrea-type": "hologram", "podnet-owner": "podnet"},
		"broken":  {"antrea-type": "container", "podnet-owner": "podnet", "container-id": "c7", "attached-mac": "x"},
		"good":    ours,
	} {
		w.Bridge.Insert(podnet.Port{PortKey: podnet.PortKey{Name: name}, OFPort: 5, ExternalIDs: ids})
	}
	n, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The port that cannot be read keeps its address all the same.
	for _, id := range []string{"c7", "leaked"} {
		if _, err := w.Addresses.Allocate(t.Context(), podnettest.NewRequest(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.GC(t.Context(), []ifstore.Key{{ContainerID: "c1", IfName: "eth0"}}); err != nil {
		t.Error(err)
	}
	if leases := w.Addresses.Leases(); !slices.Equal(leases, []string{"c7/eth0"}) {
		t.Errorf("leases %q, want that of the broken port", leases)
	}
	if ifaces := n.Interfaces(); len(ifaces) != 1 || ifaces[0].Name != "good" {
		t.Errorf("restored %+v, want the good one", ifaces)
	}
	ports, _ := w.Bridge.Ports(t.Context())
	if names := podnet.AntreaPorts(ports); !slices.Equal(names, []string{"antrea"}) {
		t.Errorf("ports of a running Antrea: %q", names)
	}
}

// Operations before the first Reconcile read the bridge themselves; while it
// cannot be read they say so.
func TestOperationsBeforeReconcile(t *testing.T) {
	w := podnettest.NewWorld()
	first, stop := podnettest.Start(t, w.Config())
	mustAdd(t, first, "c1")
	stop()
	w.Bridge.Before("Ports", boom)
	n, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, addErr := n.Add(t.Context(), podnettest.NewRequest("c2"))
	for op, err := range map[string]error{
		"Add":    addErr,
		"Delete": n.Delete(t.Context(), keyOf("c1")),
		"Check":  n.Check(t.Context(), keyOf("c1")),
		"GC":     n.GC(t.Context(), nil),
	} {
		if !errors.Is(err, podnet.ErrTryAgain) || !errors.Is(err, errBoom) {
			t.Errorf("%s: %v, want ErrTryAgain with the cause", op, err)
		}
	}
	if err := n.Replay(t.Context(), w.Flows.Replay); !errors.Is(err, errBoom) || w.Flows.Len() != 1 {
		t.Errorf("a replay of a store that was never read: %v", err)
	}
	w.Bridge.Before("Ports", nil)
	mustDelete(t, n, "c1")
	wantNothingLeft(t, w, n)
}

// OVSDB was away; rows changed meanwhile.
func TestReconcileAgain(t *testing.T) {
	w := podnettest.NewWorld()
	n, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	kept, replaced, gone := mustAdd(t, n, "kept"), mustAdd(t, n, "replaced"), mustAdd(t, n, "gone")
	ports, _ := w.Bridge.Ports(t.Context())
	w.Bridge.Remove(gone.Name)
	for _, p := range ports {
		if p.Name == replaced.Name {
			w.Bridge.Remove(p.Name)
			p.Gen, p.OFPort = "", 44
			w.Bridge.Insert(p)
		}
	}
	w.Bridge.SetOFPort(kept.Name, 33, "")
	if err := n.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantReady(t, w, n, "kept")
	wantReady(t, w, n, "replaced")
	if got := get(t, n, "gone"); got.State != ifstore.StateWaiting || !strings.Contains(got.Waiting, "no such port") {
		t.Errorf("an interface whose port is gone is %s, waiting for %q", got.State, got.Waiting)
	}
	for _, id := range []string{"kept", "replaced", "gone"} {
		mustDelete(t, n, id)
	}
	wantNothingLeft(t, w, n)
}

// A look at a port that waits gives way to the Reconcile that brings the port's
// new row: the two may come at the same moments for ever.
func TestReconcileAdoptsARowThatIsBeingLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, err := podnet.New(w.Config())
		if err != nil {
			t.Fatal(err)
		}
		old := mustAdd(t, n, "c1")
		ports, _ := w.Bridge.Ports(t.Context())
		w.Bridge.Remove(old.Name)
		ports[0].Gen, ports[0].OFPort = "", 44
		w.Bridge.Insert(ports[0])

		var looks atomic.Int32
		w.Bridge.Before("OFPort", func(ctx context.Context) error {
			if looks.Add(1) > 1 {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		look := make(chan []error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { look <- n.Sync(ctx, []podnet.PortKey{{Name: old.Name}}) }()
		synctest.Wait()
		if err := n.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if errs := <-look; !errors.Is(errs[0], podnet.ErrBusy) {
			t.Errorf("the look ended with %v, want that it gave way", errs)
		}
		if now := get(t, n, "c1"); now.Gen == old.Gen || now.OFPort != 44 {
			t.Errorf("row %s on OpenFlow port %d, want the new row and 44", now.Gen, now.OFPort)
		}
		wantReady(t, w, n, "c1")
	})
}

// Nor does it wait for an operation that holds on to its container.
func TestReconcileDoesNotWaitForAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, err := podnet.New(w.Config())
		if err != nil {
			t.Fatal(err)
		}
		old := mustAdd(t, n, "c1")
		ports, _ := w.Bridge.Ports(t.Context())
		w.Bridge.Remove(old.Name)
		ports[0].Gen = ""
		w.Bridge.Insert(ports[0])
		w.Linker.Before("Check", func(ctx context.Context) error { return pause(ctx, time.Minute) })
		ended := make(chan struct{})
		go func() { defer close(ended); _ = n.Check(t.Context(), keyOf("c1")) }()
		synctest.Wait()
		begun := time.Now()
		if err := n.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("Reconcile took %v", took)
		}
		<-ended
		if err := n.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantReady(t, w, n, "c1")
	})
}
