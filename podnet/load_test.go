package podnet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// Numbers move at random under Adds, Deletes and Replays; in the end flows,
// records and bridge agree.
func TestNumbersMoveUnderLoad(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := podnettest.NewWorld()
	w.Bridge.Freed = nil // here ports lose their numbers before their flows, as with a real STEAL
	n := start(t, w.AsyncConfig(t, asyncQuick))
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for g := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(g)))
		load.Go(func() {
			for range 60 {
				id := fmt.Sprint("g", g, "c", random.IntN(4))
				if random.IntN(2) == 0 {
					mustTry(t, func() error { _, err := n.Add(ctx, podnettest.NewRequest(id)); return err })
				} else {
					mustTry(t, func() error { return n.Delete(ctx, keyOf(id)) })
				}
			}
		})
	}
	var chaos sync.WaitGroup
	chaos.Go(func() {
		random := rand.New(rand.NewPCG(seed, 99))
		for ctx.Err() == nil {
			ports, _ := w.Bridge.Ports(ctx)
			if len(ports) < 2 {
				continue
			}
			a, b := ports[random.IntN(len(ports))], ports[random.IntN(len(ports))]
			func() {
				defer func() { _ = recover() }() // the port may be gone by now
				w.Bridge.SetOFPort(a.Name, b.OFPort, "")
				w.Bridge.SetOFPort(b.Name, a.OFPort, "")
			}()
			if random.IntN(5) == 0 {
				if err := n.Replay(ctx, w.Flows.Replay); err != nil && ctx.Err() == nil {
					t.Errorf("Replay: %v", err)
				}
			}
		}
	})
	load.Wait()
	cancel()
	chaos.Wait()
	// The swaps race with each other, so numbers may be doubled: give each port one of its own.
	ports, _ := w.Bridge.Ports(t.Context())
	for i, p := range ports {
		w.Bridge.SetOFPort(p.Name, int32(1000+i), "")
	}
	eventually(t, "every interface is ready on its number", func() bool {
		for _, iface := range n.Interfaces() {
			ofport, err := w.Bridge.OFPort(context.Background(), podnet.PortKey{Name: iface.Name, Gen: iface.Gen})
			if err != nil || iface.State != ifstore.StateReady || iface.OFPort != ofport || !slices.Equal(w.Flows.Of(iface.Key), []uint32{ofport}) {
				return false
			}
		}
		return true
	})
	if flows, ifaces := w.Flows.Len(), len(n.Interfaces()); flows != ifaces {
		t.Errorf("flows of %d interfaces, %d exist", flows, ifaces)
	}
	for _, iface := range n.Interfaces() {
		mustDelete(t, n, iface.ContainerID)
	}
	wantNothingLeft(t, w, n)
}

func mustTry(t *testing.T, fn func() error) {
	if err := fn(); err != nil && !errors.Is(err, podnet.ErrOvertaken) {
		t.Errorf("%v", err)
	}
}
