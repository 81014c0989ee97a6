package podnet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestDeleteThreeTimesAndTheUnknown(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	mustAdd(t, n, "c1")
	for range 3 {
		mustDelete(t, n, "c1")
	}
	mustDelete(t, n, "neverseen")
	wantNothingLeft(t, w, n)
	if calls := w.Addresses.Calls(); !slices.Contains(calls, "Release neverseen/eth0") {
		t.Errorf("the addresses of an unknown key were not released: %q", calls)
	}
	if err := n.Delete(t.Context(), ifstore.Key{ContainerID: "../x", IfName: "eth0"}); !errors.Is(err, podnet.ErrBadRequest) {
		t.Errorf("Delete of an id that is none: %v", err)
	}
}

// Every piece may be gone already.
func TestDeleteWithMissingPieces(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	iface := mustAdd(t, n, "c1")
	w.Bridge.Remove(iface.Name)
	if err := w.Linker.Unlink(t.Context(), iface); err != nil {
		t.Fatal(err)
	}
	if err := w.Addresses.Release(t.Context(), iface.Key); err != nil {
		t.Fatal(err)
	}
	w.Flows.Lose()
	mustDelete(t, n, "c1")
	wantNothingLeft(t, w, n)
}

// The order of a Delete, and the mark before the number is free.
func TestDeleteOrder(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	iface := mustAdd(t, n, "c1")
	var order []string
	note := func(what string) func(context.Context) error {
		return func(context.Context) error {
			have, _ := n.Interfaces(), 0
			state := "gone"
			if len(have) > 0 {
				state = string(have[0].State)
			}
			order = append(order, what+" "+state)
			return nil
		}
	}
	w.Flows.Before("Uninstall", note("flows"))
	w.Bridge.Before("DeletePort", func(ctx context.Context) error {
		ports, err := w.Bridge.Ports(ctx)
		if err != nil || ports[0].ExternalIDs["podnet-state"] != "withdrawing" {
			t.Errorf("the row is not marked before its number is freed: %v %v", ports, err)
		}
		return note("port")(ctx)
	})
	w.Linker.Before("Unlink", note("link"))
	w.Addresses.Before("Release", note("addresses"))
	mustDelete(t, n, iface.ContainerID)
	want := []string{"flows withdrawing", "port withdrawing", "link withdrawing", "addresses gone"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}

// Without a switch the flows cannot be removed: Delete answers "try again" at
// its deadline, the removal goes on, and a repeated Delete joins it.
func TestDeleteWithoutASwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		iface := mustAdd(t, n, "c1")
		w.Flows.Away(true)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			begun := time.Now()
			err := n.Delete(ctx, iface.Key)
			cancel()
			if !errors.Is(err, podnet.ErrTryAgain) {
				t.Fatalf("Delete: %v, want ErrTryAgain", err)
			}
			if took := time.Since(begun); took != 10*time.Second {
				t.Errorf("Delete gave up after %v, want its deadline", took)
			}
			if got := get(t, n, "c1"); got.State != ifstore.StateWithdrawing {
				t.Errorf("state %s, want withdrawing", got.State)
			}
			if len(w.Bridge.Names()) != 1 {
				t.Error("the port was deleted while flows stand")
			}
		}
		// One that waits long enough sees it through.
		done := make(chan error, 1)
		go func() { done <- n.Delete(context.Background(), iface.Key) }()
		time.Sleep(time.Minute)
		w.Flows.Away(false)
		if err := <-done; err != nil {
			t.Errorf("Delete that waited for the switch: %v", err)
		}
		wantNothingLeft(t, w, n)
	})
}

// A switch that answers at once that it is away is no reason to answer at once.
func TestDeleteWaitsForASwitchThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		iface := mustAdd(t, n, "c1")
		w.Flows.Before("Uninstall", func(context.Context) error { return podnet.ErrNotConnected })
		time.AfterFunc(5*time.Second, func() { w.Flows.Before("Uninstall", nil) })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := n.Delete(ctx, iface.Key); err != nil {
			t.Errorf("Delete: %v", err)
		}
		wantNothingLeft(t, w, n)
	})
}

// What no waiting helps is reported at once, and tried again in the background.
func TestDeleteFailsAtEveryStep(t *testing.T) {
	for _, step := range []struct {
		op     string
		faults func(w *podnettest.World) *podnettest.Faults
	}{
		{"Uninstall", func(w *podnettest.World) *podnettest.Faults { return &w.Flows.Faults }},
		{"DeletePort", func(w *podnettest.World) *podnettest.Faults { return &w.Bridge.Faults }},
		{"Unlink", func(w *podnettest.World) *podnettest.Faults { return &w.Linker.Faults }},
		{"Release", func(w *podnettest.World) *podnettest.Faults { return &w.Addresses.Faults }},
	} {
		t.Run(step.op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := podnettest.NewWorld()
				n, stop := podnettest.Start(t, w.Config())
				defer stop()
				mustAdd(t, n, "c1")
				step.faults(w).Before(step.op, boom)
				err := n.Delete(t.Context(), keyOf("c1"))
				if !errors.Is(err, errBoom) || !errors.Is(err, podnet.ErrTryAgain) {
					t.Fatalf("Delete: %v, want boom and ErrTryAgain", err)
				}
				time.Sleep(10 * time.Minute)
				step.faults(w).Before(step.op, nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				wantNothingLeft(t, w, n)
				mustAdd(t, n, "c1")
				time.Sleep(time.Hour)
				wantReady(t, w, n, "c1") // no removal of the first life is left to strike the second
			})
		})
	}
}

// Readers must never find a number whose port is gone (OF-21).
func TestReadersNeverSeeAFreedNumber(t *testing.T) {
	w := podnettest.NewWorld()
	cfg := w.Config()
	cfg.Store = ifstore.New()
	n := start(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var reader sync.WaitGroup
	reader.Go(func() {
		for ctx.Err() == nil {
			for ofport := range uint32(400) {
				iface, ok := cfg.Store.ByOFPort(ofport)
				if !ok {
					continue
				}
				_, err := w.Bridge.OFPort(ctx, podnet.PortKey{Name: iface.Name, Gen: iface.Gen})
				if again, still := cfg.Store.ByOFPort(ofport); err != nil && still && again.Gen == iface.Gen {
					t.Errorf("the store offers number %d of %s, whose port says %v", ofport, iface.Key, err)
				}
			}
		}
	})
	for i := range 300 {
		id := fmt.Sprint("c", i)
		mustAdd(t, n, id)
		mustDelete(t, n, id)
	}
	cancel()
	reader.Wait()
	wantNothingLeft(t, w, n)
}

// CN-11: overlapping operations of one Pod. Whatever the order, each Add ends
// with an interface or with nothing, and after the last Delete nothing is left.
func TestOverlappingAddsAndDeletes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 15 {
		w := podnettest.NewWorld()
		cfg := w.Config()
		if round%2 == 1 {
			cfg = w.AsyncConfig(t, asyncQuick)
		}
		n, stop := podnettest.Start(t, cfg)
		var running sync.WaitGroup
		for i := range 20 {
			req := podnettest.NewRequest(fmt.Sprint("c", random.IntN(5)))
			req.Pod = ifstore.Pod{Namespace: "default", Name: "web-0"}
			if i%2 == 0 {
				running.Go(func() {
					_, err := n.Add(t.Context(), req)
					if err != nil && !errors.Is(err, podnet.ErrOvertaken) {
						t.Errorf("Add: %v", err)
					}
				})
			} else {
				running.Go(func() {
					if err := n.Delete(t.Context(), req.Key); err != nil {
						t.Errorf("Delete: %v", err)
					}
				})
			}
		}
		running.Wait()
		for _, iface := range n.Interfaces() {
			eventually(t, "ready", func() bool { return get(t, n, iface.ContainerID).State == ifstore.StateReady })
			wantReady(t, w, n, iface.ContainerID)
		}
		if links, leases := w.Linker.Names(), w.Addresses.Leases(); len(links) != len(n.Interfaces()) || len(leases) != len(links) {
			t.Errorf("links %q and leases %q for %d interfaces", links, leases, len(n.Interfaces()))
		}
		for c := range 5 {
			mustDelete(t, n, fmt.Sprint("c", c))
		}
		wantNothingLeft(t, w, n)
		stop()
	}
}

func TestGC(t *testing.T) {
	w := podnettest.NewWorld()
	n, err := podnet.New(w.Config()) // not run: its own sweep would take part
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2", "c3"} {
		mustAdd(t, n, id)
	}
	// Leaked by a crash, and held for a container that the runtime knows.
	for _, id := range []string{"leaked", "known"} {
		if _, err := w.Addresses.Allocate(t.Context(), podnettest.NewRequest(id)); err != nil {
			t.Fatal(err)
		}
	}
	// GC leaves alone what is not older than itself, and the clock of Windows stands still for up to 16 ms.
	for last := time.Now(); !time.Now().After(last); {
		runtime.Gosched()
	}
	w.Linker.Before("Unlink", boom)
	err = n.GC(t.Context(), []ifstore.Key{keyOf("c2"), keyOf("known")})
	if !errors.Is(err, errBoom) || strings.Count(err.Error(), "boom") != 2 {
		t.Errorf("GC: %v, want both failures named", err)
	}
	w.Linker.Before("Unlink", nil)
	if err := n.GC(t.Context(), []ifstore.Key{keyOf("c2"), keyOf("known")}); err != nil {
		t.Fatal(err)
	}
	if len(n.Interfaces()) != 1 || len(w.Linker.Names()) != 1 {
		t.Errorf("interfaces %v, links %q; want c2 alone", n.Interfaces(), w.Linker.Names())
	}
	wantReady(t, w, n, "c2")
	if leases := w.Addresses.Leases(); !slices.Equal(leases, []string{"c2/eth0", "known/eth0"}) {
		t.Errorf("leases %q", leases)
	}
}
