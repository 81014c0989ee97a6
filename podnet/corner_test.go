package podnet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// A move whose outcome is unknown: flows may stand under both numbers, and
// whatever comes next covers both.
func TestMoveWithUnknownOutcome(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, w *podnettest.World, n *podnet.Network, i ifstore.Interface){
		"tried again": func(t *testing.T, w *podnettest.World, n *podnet.Network, i ifstore.Interface) {
			if err := n.Sync(t.Context(), []podnet.PortKey{{Name: i.Name}})[0]; err != nil {
				t.Error(err)
			}
			wantReady(t, w, n, "c1")
		},
		"moved once more": func(t *testing.T, w *podnettest.World, n *podnet.Network, i ifstore.Interface) {
			w.Bridge.SetOFPort(i.Name, 88, "")
			if err := n.Sync(t.Context(), []podnet.PortKey{{Name: i.Name}})[0]; err != nil {
				t.Error(err)
			}
			wantReady(t, w, n, "c1")
		},
		"replayed": func(t *testing.T, w *podnettest.World, n *podnet.Network, _ ifstore.Interface) {
			if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
				t.Error(err)
			}
			wantReady(t, w, n, "c1")
		},
		"deleted": func(*testing.T, *podnettest.World, *podnet.Network, ifstore.Interface) {},
	} {
		for _, applied := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := podnettest.NewWorld()
				n, err := podnet.New(w.Config())
				if err != nil {
					t.Fatal(err)
				}
				iface := mustAdd(t, n, "c1")
				unknown := func(context.Context) error { return podnet.ErrOutcomeUnknown }
				if applied {
					w.Flows.After("Replace", unknown)
				} else {
					w.Flows.Before("Replace", unknown)
				}
				w.Bridge.SetOFPort(iface.Name, 77, "")
				if err := n.Sync(t.Context(), []podnet.PortKey{{Name: iface.Name}})[0]; !errors.Is(err, podnet.ErrOutcomeUnknown) {
					t.Errorf("Sync: %v", err)
				}
				if got := get(t, n, "c1"); got.State != ifstore.StateWaiting {
					t.Errorf("state %s after an unknown outcome", got.State)
				}
				w.Flows.Before("Replace", nil)
				w.Flows.After("Replace", nil)
				then(t, w, n, iface)
				mustDelete(t, n, "c1")
				wantNothingLeft(t, w, n)
			})
		}
	}
}

// A move that the switch refuses leaves the flows where they are, and the next
// attempt knows it.
func TestMoveRefused(t *testing.T) {
	w := podnettest.NewWorld()
	n, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	iface := mustAdd(t, n, "c1")
	w.Flows.Before("Replace", boom)
	w.Bridge.SetOFPort(iface.Name, 77, "")
	if err := n.Sync(t.Context(), []podnet.PortKey{{Name: iface.Name}})[0]; !errors.Is(err, errBoom) {
		t.Errorf("Sync: %v", err)
	}
	if got := get(t, n, "c1"); got.State != ifstore.StateWaiting || got.OFPort != iface.OFPort || got.Waiting != "boom" {
		t.Errorf("%s on %d, waiting for %q", got.State, got.OFPort, got.Waiting)
	}
	w.Flows.Before("Replace", nil)
	if err := n.Sync(t.Context(), []podnet.PortKey{{Name: iface.Name}})[0]; err != nil {
		t.Error(err)
	}
	wantReady(t, w, n, "c1")
}

// miscounting is a Flows that loses a result.
type miscounting struct{ podnet.Flows }

func (m miscounting) Install(ctx context.Context, ifaces []ifstore.Interface) []error {
	return m.Flows.Install(ctx, ifaces)[1:]
}

func TestMissingResultIsNoSuccess(t *testing.T) {
	w := podnettest.NewWorld()
	cfg := w.Config()
	cfg.Flows = miscounting{w.Flows}
	n := start(t, cfg)
	if _, err := n.Add(t.Context(), podnettest.NewRequest("c1")); !errors.Is(err, podnet.ErrOutcomeUnknown) {
		t.Errorf("Add: %v", err)
	}
	wantNothingLeft(t, w, n)
}

// The undo fails below the record: it is put back as withdrawing, and goes on.
func TestUndoFailsAtTheCable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		w.Bridge.Before("AddPort", boom)
		w.Linker.Before("Unlink", func(context.Context) error { return errors.New("device busy") })
		_, err := n.Add(t.Context(), podnettest.NewRequest("c1"))
		if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "undo of link: device busy") {
			t.Errorf("Add: %v", err)
		}
		if got := get(t, n, "c1"); got.State != ifstore.StateWithdrawing {
			t.Errorf("state %s", got.State)
		}
		w.Linker.Before("Unlink", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantNothingLeft(t, w, n)
	})
}

// What a part answers is looked at before it is used.
func TestPartsThatAnswerNonsense(t *testing.T) {
	for name, wrap := range map[string]func(cfg *podnet.Config){
		"has no name":        func(cfg *podnet.Config) { cfg.Linker = oddLinker{cfg.Linker, podnet.Link{}} },
		"too long for it":    func(cfg *podnet.Config) { cfg.Linker = oddLinker{cfg.Linker, podnet.Link{Name: "sixteencharacter"}} },
		"is not in 1..65279": func(cfg *podnet.Config) { cfg.Readiness = oddReadiness{cfg.Readiness} },
	} {
		t.Run(name, func(t *testing.T) {
			w := podnettest.NewWorld()
			cfg := w.Config()
			wrap(&cfg)
			n := start(t, cfg)
			if _, err := n.Add(t.Context(), podnettest.NewRequest("c1")); err == nil {
				t.Error("Add succeeds")
			}
			if w.Flows.Len() > 0 || len(w.Bridge.Names()) > 0 || len(n.Interfaces()) > 0 {
				t.Errorf("left over: %q", w.Leftovers())
			}
		})
	}
}

type oddLinker struct {
	podnet.Linker
	link podnet.Link
}

func (o oddLinker) Link(context.Context, podnet.Request) (podnet.Link, error) { return o.link, nil }

type oddReadiness struct{ podnet.PortReadiness }

func (oddReadiness) Begin(context.Context, podnet.PortKey) (uint32, bool, error) {
	return 0xffffffff, true, nil // -1 in the clothes of a number
}

// A repeated Add finds what a restart has just read back: it asks for the
// number and installs the flows like the first.
func TestAddAgainAfterARestart(t *testing.T) {
	w := podnettest.NewWorld()
	n, stop := podnettest.Start(t, w.Config())
	mustAdd(t, n, "c1")
	stop()
	w.Flows.Lose()
	n, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	mustAdd(t, n, "c1")
	wantReady(t, w, n, "c1")
	// It takes nothing back when it fails.
	w.Bridge.Slow(true)
	again, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	w.Flows.Before("Install", boom)
	if _, err := again.Add(t.Context(), podnettest.NewRequest("c1")); !errors.Is(err, errBoom) {
		t.Errorf("Add: %v", err)
	}
	if len(w.Bridge.Names()) != 1 || len(w.Linker.Names()) != 1 {
		t.Error("a failed repeat took the interface away")
	}
}

// Ports that lost their number while the session was away are left out of the
// replay and wait; nothing is installed on a guess.
func TestReplayOfLostPorts(t *testing.T) {
	w := podnettest.NewWorld()
	w.Bridge.Freed = nil // one number is given twice here
	cfg := w.Config()
	table := &portTable{numbers: make(map[string]uint32)}
	cfg.Ports = table
	n, err := podnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"kept", "moved", "removed", "unset", "failed", "double", "disagree"}
	names := make(map[string]string)
	for _, id := range ids {
		names[id] = mustAdd(t, n, id).Name
	}
	w.Flows.Lose()
	w.Bridge.SetOFPort(names["moved"], 50, "")
	w.Bridge.Remove(names["removed"])
	w.Bridge.SetOFPort(names["unset"], 0, "")
	w.Bridge.SetOFPort(names["failed"], -1, "no such device")
	w.Bridge.SetOFPort(names["double"], 50, "")
	table.set(names["disagree"], 99)
	if err := n.Replay(t.Context(), w.Flows.Replay); err != nil {
		t.Fatal(err)
	}
	wantReady(t, w, n, "kept")
	ready := 0
	for id, text := range map[string]string{"removed": "no such port", "unset": "no OpenFlow port number", "failed": "no such device", "disagree": "says 99"} {
		if got := get(t, n, id); got.State != ifstore.StateWaiting || got.OFPort != 0 || !strings.Contains(got.Waiting, text) {
			t.Errorf("%s is %s on %d, waiting for %q; want %q", id, got.State, got.OFPort, got.Waiting, text)
		}
	}
	for _, id := range []string{"moved", "double"} { // one of them, not both
		if get(t, n, id).State == ifstore.StateReady {
			ready++
		}
	}
	if ready != 1 || len(w.Flows.On(50)) != 1 || w.Flows.Len() != 2 {
		t.Errorf("%d of two interfaces with one number are ready, flows of %v", ready, w.Flows.On(50))
	}
	for _, id := range ids {
		mustDelete(t, n, id)
	}
	wantNothingLeft(t, w, n)
}

// A port is gone while the switch is away: its interface is not ready, although
// its flows cannot be removed yet.
func TestLostPortWithoutASwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		iface := mustAdd(t, n, "c1")
		w.Flows.Away(true)
		w.Bridge.SetOFPort(iface.Name, -1, "no such device")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if got := get(t, n, "c1"); got.State != ifstore.StateWaiting || got.OFPort != iface.OFPort || !strings.Contains(got.Waiting, "no such device") {
			t.Errorf("%s on %d, waiting for %q", got.State, got.OFPort, got.Waiting)
		}
		if events := w.Events(); len(events) != 1 || !strings.Contains(events[0].Message, "no such device") {
			t.Errorf("events %+v", events)
		}
		w.Flows.Away(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := get(t, n, "c1"); got.OFPort != 0 || w.Flows.Len() != 0 {
			t.Errorf("number %d, %d flows after the switch is back", got.OFPort, w.Flows.Len())
		}
		mustDelete(t, n, "c1")
		wantNothingLeft(t, w, n)
	})
}

// An address that an interface still holds while it goes away is free soon.
func TestAddressOfAnInterfaceThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		req := podnettest.NewRequest("c1")
		req.IPAM, req.Addresses = "static", []ifstore.Address{address("10.9.0.1/24")}
		if _, err := n.Add(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		w.Flows.Away(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Delete(ctx, req.Key); !errors.Is(err, podnet.ErrTryAgain) {
			t.Fatalf("Delete: %v", err)
		}
		other := podnettest.NewRequest("c2")
		other.IPAM, other.Addresses = "static", req.Addresses
		if _, err := n.Add(t.Context(), other); !errors.Is(err, podnet.ErrTryAgain) || errors.Is(err, podnet.ErrBadRequest) {
			t.Errorf("Add: %v, want ErrTryAgain", err)
		}
		w.Flows.Away(false)
		time.Sleep(time.Minute)
		if _, err := n.Add(t.Context(), other); err != nil {
			t.Error(err)
		}
	})
}

// Notes in the port's row are a help, not a condition: an asynchronous Add
// succeeds without the note that no flow was sent.
func TestAsyncAddWithoutItsNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		w.Bridge.Slow(true)
		w.Bridge.Before("SetExternalIDs", boom)
		n, stop := podnettest.Start(t, w.AsyncConfig(t, async.Config{}))
		defer stop()
		mustAdd(t, n, "c1")
		w.Bridge.Slow(false)
		time.Sleep(time.Second)
		synctest.Wait()
		wantReady(t, w, n, "c1")
		mustDelete(t, n, "c1") // nor is the note of a removal that succeeds at once
		wantNothingLeft(t, w, n)
	})
}
