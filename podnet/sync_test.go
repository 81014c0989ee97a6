package podnet_test

import (
	"context"
	"errors"
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

// world starts a Network in a synctest bubble.
func world(t *testing.T, fn func(t *testing.T, w *podnettest.World, n *podnet.Network)) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		fn(t, w, n)
		if broken := w.Broken(); len(broken) > 0 {
			t.Errorf("%q", broken)
		}
	})
}

func TestNumberChangeMovesTheFlows(t *testing.T) {
	world(t, func(t *testing.T, w *podnettest.World, n *podnet.Network) {
		iface := mustAdd(t, n, "c1")
		w.Flows.ForgetCalls()
		w.Bridge.SetOFPort(iface.Name, 77, "")
		time.Sleep(time.Second)
		synctest.Wait()
		wantReady(t, w, n, "c1")
		if calls := w.Flows.Calls(); !slices.Equal(calls, []string{"Replace c1/eth0"}) {
			t.Errorf("calls %q, want one Replace: old and new in one bundle", calls)
		}
	})
}

// STEAL: a new port takes the number of an old one, which gets another.
func TestStolenNumber(t *testing.T) {
	world(t, func(t *testing.T, w *podnettest.World, n *podnet.Network) {
		a, b := mustAdd(t, n, "a"), mustAdd(t, n, "b")
		w.Flows.ForgetCalls()
		// Swapped between two looks.
		w.Bridge.SetOFPort(a.Name, int32(b.OFPort), "")
		w.Bridge.SetOFPort(b.Name, int32(a.OFPort), "")
		time.Sleep(time.Second)
		synctest.Wait()
		wantReady(t, w, n, "a")
		wantReady(t, w, n, "b")
		for _, ofport := range []uint32{a.OFPort, b.OFPort} {
			if on := w.Flows.On(ofport); len(on) != 1 {
				t.Errorf("flows of %v on OpenFlow port %d", on, ofport)
			}
		}

		// Taken by an Add while nobody tells about the loser.
		var stolen ifstore.Interface
		w.Bridge.After("AddPort", func(context.Context) error {
			stolen = get(t, n, "a")
			w.Bridge.SetOFPort(podnettest.HostName(keyOf("c")), int32(stolen.OFPort), "")
			w.Bridge.SetOFPort(stolen.Name, 55, "")
			return nil
		})
		c := mustAdd(t, n, "c")
		if c.OFPort != stolen.OFPort {
			t.Fatalf("c got number %d", c.OFPort)
		}
		wantReady(t, w, n, "c")
		if on := w.Flows.On(c.OFPort); !slices.Equal(on, []ifstore.Key{c.Key}) {
			t.Errorf("flows on the stolen number: %v", on)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		wantReady(t, w, n, "a")
	})
}

func TestLostPortIsWithdrawnAndReturns(t *testing.T) {
	for name, lose := range map[string]func(w *podnettest.World, iface ifstore.Interface){
		"device gone": func(w *podnettest.World, i ifstore.Interface) {
			w.Bridge.SetOFPort(i.Name, -1, "could not open network device")
		},
		"number unset": func(w *podnettest.World, i ifstore.Interface) { w.Bridge.SetOFPort(i.Name, 0, "") },
	} {
		t.Run(name, func(t *testing.T) {
			world(t, func(t *testing.T, w *podnettest.World, n *podnet.Network) {
				iface := mustAdd(t, n, "c1")
				lose(w, iface)
				time.Sleep(time.Second)
				synctest.Wait()
				got := get(t, n, "c1")
				if got.State != ifstore.StateWaiting || got.OFPort != 0 || w.Flows.Len() != 0 {
					t.Errorf("state %s, number %d, %d flows; want it withdrawn and waiting", got.State, got.OFPort, w.Flows.Len())
				}
				if len(w.Events()) != 0 {
					t.Errorf("told at once: %+v", w.Events())
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				events := w.Events()
				if len(events) != 1 || events[0].Type != podnet.NetworkNotReady {
					t.Fatalf("events %+v, want one NetworkNotReady", events)
				}
				w.Bridge.SetOFPort(iface.Name, 42, "")
				time.Sleep(time.Minute)
				synctest.Wait()
				wantReady(t, w, n, "c1")
				if events := w.Events(); len(events) != 2 || events[1].Type != podnet.NetworkReady {
					t.Errorf("events %+v, want NetworkReady at the end", events)
				}
			})
		})
	}
}

// The port watch loses the event; the periodic look repairs it for those that wait.
func TestLostEventIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		cfg := w.Config()
		cfg.Readiness = deaf{cfg.Readiness}
		w.Bridge.Slow(true)
		n, stop := podnettest.Start(t, cfg)
		defer stop()
		mustAdd(t, n, "c1") // deaf promises and never keeps it
		stop()
		n, stop = podnettest.Start(t, cfg)
		defer stop()
		w.Bridge.Slow(false)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		wantReady(t, w, n, "c1")
	})
}

// deaf promises everything and hears nothing.
type deaf struct{ podnet.PortReadiness }

func (deaf) Begin(context.Context, podnet.PortKey) (uint32, bool, error) { return 0, false, nil }
func (deaf) Run(ctx context.Context, _ podnet.PortSink) error            { <-ctx.Done(); return nil }

// A number is used only if OVSDB and the OpenFlow session agree.
func TestBothMustAgree(t *testing.T) {
	w := podnettest.NewWorld()
	cfg := w.Config()
	table := &portTable{numbers: make(map[string]uint32)}
	cfg.Ports = table
	cfg.Readiness = deaf{cfg.Readiness}
	n, err := podnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	iface := mustAdd(t, n, "c1")
	key := []podnet.PortKey{{Name: iface.Name, Gen: iface.Gen}}
	if err := n.Sync(t.Context(), key)[0]; err == nil || !strings.Contains(err.Error(), "does not list it") {
		t.Errorf("Sync of a port that OpenFlow does not list: %v", err)
	}
	table.set(iface.Name, 9)
	if err := n.Sync(t.Context(), key)[0]; err == nil || !strings.Contains(err.Error(), "says 9") {
		t.Errorf("Sync of a port with two numbers: %v", err)
	}
	if w.Flows.Len() != 0 {
		t.Error("flows went in without agreement")
	}
	table.set(iface.Name, 1)
	if err := n.Sync(t.Context(), key)[0]; err != nil {
		t.Errorf("Sync: %v", err)
	}
	wantReady(t, w, n, "c1")
	// Disagreement later withdraws nothing: nobody knows which of them is right.
	table.set(iface.Name, 9)
	if err := n.Sync(t.Context(), key)[0]; err == nil {
		t.Error("no retry was asked for")
	}
	wantReady(t, w, n, "c1")
}

type portTable struct {
	mu      sync.Mutex
	numbers map[string]uint32
}

func (p *portTable) set(name string, ofport uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[name] = ofport
}

func (p *portTable) PortState(name string) (uint32, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ofport, ok := p.numbers[name]
	return ofport, ok
}

func TestSyncOfWhatIsNobodys(t *testing.T) {
	w := podnettest.NewWorld()
	n, err := podnet.New(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	iface := mustAdd(t, n, "c1")
	w.Flows.ForgetCalls()
	for i, err := range n.Sync(t.Context(), []podnet.PortKey{{Name: "nobody"}, {Name: iface.Name, Gen: "another life"}, {Name: iface.Name}, {Name: iface.Name, Gen: iface.Gen}}) {
		if err != nil {
			t.Errorf("result %d: %v", i, err)
		}
	}
	if calls := w.Flows.Calls(); len(calls) > 0 {
		t.Errorf("flows were changed: %q", calls)
	}
}

// Sync does not wait for a container that is being worked on.
func TestSyncNeverWaitsForAContainer(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	w.Bridge.Slow(true)
	result := make(chan error, 1)
	go func() {
		_, err := n.Add(context.Background(), podnettest.NewRequest("c1"))
		result <- err
	}()
	eventually(t, "c1 waits for its number", func() bool { return n.Waiting() == 1 })
	if err := n.Sync(t.Context(), []podnet.PortKey{{Name: podnettest.HostName(keyOf("c1"))}})[0]; !errors.Is(err, podnet.ErrBusy) {
		t.Errorf("Sync: %v, want ErrBusy", err)
	}
	w.Bridge.Slow(false)
	if err := <-result; err != nil {
		t.Error(err)
	}
}
