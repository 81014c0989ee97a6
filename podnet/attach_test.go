package podnet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestAddInstallsFlowsBeforeItReturns(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	iface := mustAdd(t, n, "c1")
	wantReady(t, w, n, "c1")
	if diff := cmp.Diff(get(t, n, "c1"), iface, compareNetip...); diff != "" {
		t.Errorf("record (-store +Add):\n%s", diff)
	}
	// Announced after the flows were in, nothing marked, nobody told.
	calls := slices.DeleteFunc(w.Linker.Calls(), func(c string) bool { return strings.HasPrefix(c, "Alive") })
	if diff := cmp.Diff([]string{"Link c1/eth0", "Announce c1/eth0"}, calls); diff != "" {
		t.Errorf("calls of the linker (-want +got):\n%s", diff)
	}
	if calls := w.Bridge.Calls(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "SetExternalIDs") }) {
		t.Errorf("an Add that is answered at once needs no second transaction: %q", calls)
	}
	if events := w.Events(); len(events) > 0 {
		t.Errorf("events: %+v", events)
	}
	mustDelete(t, n, "c1")
	wantNothingLeft(t, w, n)
}

func TestAddOrder(t *testing.T) {
	w := podnettest.NewWorld()
	cfg := w.Config()
	var steps []string
	cfg.Observer.Call = func(c podnet.Call) {
		steps = append(steps, string(c.Op)+":")
		for _, s := range c.Steps {
			steps = append(steps, s.Name)
		}
	}
	n := start(t, cfg)
	mustAdd(t, n, "c1")
	mustDelete(t, n, "c1")
	want := strings.Fields("add: validate start lock allocate link record port number flows delete: validate start lock flows port link addresses")
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// faultPoints are all places where an Add can fail: the part, its method, and
// whether the call had its effect before it failed.
var faultPoints = []struct {
	op    string
	part  func(w *podnettest.World, cfg podnet.Config) *podnettest.Faults
	after bool
}{
	{"Allocate", func(w *podnettest.World, _ podnet.Config) *podnettest.Faults { return &w.Addresses.Faults }, false},
	{"Allocate", func(w *podnettest.World, _ podnet.Config) *podnettest.Faults { return &w.Addresses.Faults }, true},
	{"Link", func(w *podnettest.World, _ podnet.Config) *podnettest.Faults { return &w.Linker.Faults }, false},
	{"Link", func(w *podnettest.World, _ podnet.Config) *podnettest.Faults { return &w.Linker.Faults }, true},
	{"AddPort", func(w *podnettest.World, _ podnet.Config) *podnettest.Faults { return &w.Bridge.Faults }, false},
	{"Begin", func(_ *podnettest.World, cfg podnet.Config) *podnettest.Faults {
		return &cfg.Readiness.(*podnettest.WaitingReadiness).Faults
	}, false},
	{"Begin", func(_ *podnettest.World, cfg podnet.Config) *podnettest.Faults {
		return &cfg.Readiness.(*podnettest.WaitingReadiness).Faults
	}, true},
	{"Install", func(w *podnettest.World, _ podnet.Config) *podnettest.Faults { return &w.Flows.Faults }, false},
}

func pointName(op string, after bool) string {
	if after {
		return op + ", effect and all"
	}
	return op
}

func TestAddFailsAtEveryStep(t *testing.T) {
	for _, point := range faultPoints {
		t.Run(pointName(point.op, point.after), func(t *testing.T) {
			w := podnettest.NewWorld()
			cfg := w.Config()
			n := start(t, cfg)
			faults := point.part(w, cfg)
			set := faults.Before
			if point.after {
				set = faults.After
			}
			set(point.op, boom)
			_, err := n.Add(t.Context(), podnettest.NewRequest("c1"))
			opErr := (*podnet.OpError)(nil)
			if !errors.Is(err, errBoom) || !errors.As(err, &opErr) {
				t.Fatalf("Add: %v, want an *OpError around boom", err)
			}
			wantNothingLeft(t, w, n)
			set(point.op, nil)
			mustAdd(t, n, "c1")
			wantReady(t, w, n, "c1")
			mustDelete(t, n, "c1")
			wantNothingLeft(t, w, n)
		})
	}
}

func TestAddIsCancelledAtEveryStep(t *testing.T) {
	for _, point := range faultPoints {
		t.Run(pointName(point.op, point.after), func(t *testing.T) {
			w := podnettest.NewWorld()
			cfg := w.Config()
			n := start(t, cfg)
			ctx, cancel := context.WithCancel(t.Context())
			hang := func(ctx context.Context) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			if faults := point.part(w, cfg); point.after {
				faults.After(point.op, hang)
			} else {
				faults.Before(point.op, hang)
			}
			if _, err := n.Add(ctx, podnettest.NewRequest("c1")); !errors.Is(err, context.Canceled) {
				t.Fatalf("Add: %v, want it cancelled", err)
			}
			wantNothingLeft(t, w, n)
		})
	}
}

func TestAddWhosePartPanicsLeavesNothing(t *testing.T) {
	for _, point := range faultPoints {
		if point.op == "Link" && point.after {
			continue // what a Linker made before it panics is its own to know
		}
		t.Run(pointName(point.op, point.after), func(t *testing.T) {
			w := podnettest.NewWorld()
			cfg := w.Config()
			n := start(t, cfg)
			oops := func(context.Context) error { panic("oops") }
			if faults := point.part(w, cfg); point.after {
				faults.After(point.op, oops)
			} else {
				faults.Before(point.op, oops)
			}
			func() {
				defer func() {
					if p := recover(); p != "oops" {
						t.Errorf("recovered %v, want the part's panic", p)
					}
				}()
				_, err := n.Add(t.Context(), podnettest.NewRequest("c1"))
				t.Errorf("Add returned %v", err)
			}()
			wantNothingLeft(t, w, n)
			// The locks are free.
			mustDelete(t, n, "c1")
		})
	}
}

// The port row was made although AddPort could not tell: it is found by its
// marks and taken back, and a stranger's port of that name is not.
func TestAddPortWithUnknownOutcome(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	w.Bridge.After("AddPort", func(context.Context) error { return fmt.Errorf("connection lost: %w", podnet.ErrOutcomeUnknown) })
	if _, err := n.Add(t.Context(), podnettest.NewRequest("c1")); !errors.Is(err, podnet.ErrOutcomeUnknown) {
		t.Fatalf("Add: %v", err)
	}
	wantNothingLeft(t, w, n)
	w.Bridge.After("AddPort", nil)

	name := podnettest.HostName(keyOf("c2"))
	w.Bridge.Insert(podnet.Port{PortKey: podnet.PortKey{Name: name}, OFPort: 99})
	_, err := n.Add(t.Context(), podnettest.NewRequest("c2"))
	if !errors.Is(err, podnet.ErrPortExists) || !strings.Contains(err.Error(), name) {
		t.Fatalf("Add with a stranger's port in the way: %v", err)
	}
	if diff := cmp.Diff([]string{"port " + name}, w.Leftovers()); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
}

// Flows whose installation has an unknown outcome are removed before the port is.
func TestInstallWithUnknownOutcome(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	w.Flows.After("Install", func(context.Context) error { return podnet.ErrOutcomeUnknown })
	if _, err := n.Add(t.Context(), podnettest.NewRequest("c1")); !errors.Is(err, podnet.ErrOutcomeUnknown) {
		t.Fatalf("Add: %v", err)
	}
	wantNothingLeft(t, w, n)
}

// When the flows cannot be removed either, the rest goes on in the background
// and the number stays taken until then.
func TestUndoGoesOnInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		w.Flows.After("Install", func(context.Context) error {
			w.Flows.Away(true)
			return podnet.ErrOutcomeUnknown
		})
		begun := time.Now()
		_, err := n.Add(t.Context(), podnettest.NewRequest("c1"))
		if !errors.Is(err, podnet.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "goes on in the background") {
			t.Fatalf("Add: %v", err)
		}
		if took := time.Since(begun); took != 20*time.Second {
			t.Errorf("the undo gave up after %v, want 20s", took)
		}
		if iface := get(t, n, "c1"); iface.State != ifstore.StateWithdrawing {
			t.Errorf("state %s, want withdrawing", iface.State)
		}
		if _, err := n.Add(t.Context(), podnettest.NewRequest("c1")); !errors.Is(err, podnet.ErrTryAgain) {
			t.Errorf("Add while the removal goes on: %v, want ErrTryAgain", err)
		}
		w.Flows.Away(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantNothingLeft(t, w, n)
	})
}
