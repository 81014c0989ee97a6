package windows_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// RS-8: the row alone tells where the wait stood, wherever the agent was killed.
func TestRestartTakesUpTheWait(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(n *winNode, iface ifstore.Interface) // what happens before the agent is killed
		during func(n *winNode, iface ifstore.Interface) // and while it is away
		after  func(n *winNode, iface ifstore.Interface) // and after it has come back
		late   int                                       // late steps of the second agent
	}{
		{name: "no vNIC", after: func(n *winNode, i ifstore.Interface) { n.vnics.set(i.Name, true) }, late: 1},
		{name: "the vNIC comes meanwhile", during: func(n *winNode, i ifstore.Interface) { n.vnics.set(i.Name, true) }, late: 1},
		{
			name:   "switched, no number",
			before: func(n *winNode, i ifstore.Interface) { n.Bridge.Slow(true); n.vnics.set(i.Name, true) },
			after:  func(n *winNode, _ ifstore.Interface) { n.Bridge.Slow(false) },
		},
		{
			name:   "the number comes meanwhile",
			before: func(n *winNode, i ifstore.Interface) { n.Bridge.Slow(true); n.vnics.set(i.Name, true) },
			during: func(n *winNode, _ ifstore.Interface) { n.Bridge.Slow(false) },
		},
		{
			name:   "in error",
			before: func(n *winNode, i ifstore.Interface) { n.Bridge.Slow(true); n.vnics.set(i.Name, true) },
			during: func(n *winNode, i ifstore.Interface) { n.Bridge.SetOFPort(i.Name, -1, "Invalid argument") },
			after:  func(n *winNode, _ ifstore.Interface) { time.Sleep(time.Second); n.Bridge.Slow(false) },
			late:   0,
		},
		{
			name: "in the middle of a nudge",
			before: func(n *winNode, i ifstore.Interface) {
				n.opens = func(podnet.Port) error { return errNotNow }
				n.vnics.set(i.Name, true)
				for !slices.Contains(typeChanges(n, i), `""`) {
					after(10 * time.Millisecond)
				}
			},
			during: func(n *winNode, _ ifstore.Interface) { n.opens = nil },
			late:   1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late atomic.Int32
				n := newWinNode()
				n.cfg.LateSteps = []windows.LateStep{{Name: "late step", Run: func(_ context.Context, i ifstore.Interface, _ hostif.Adapter) error {
					late.Add(1)
					if i.MTU != 1400 || i.ContainerID != "c1" || i.Name == "" || i.Gen == "" {
						return fmt.Errorf("the external_ids were read as %+v", i)
					}
					return nil
				}}}
				run := func(fn func(*winNode, ifstore.Interface), iface ifstore.Interface) {
					if fn != nil {
						fn(n, iface)
					}
					after(5 * time.Second)
				}
				network, stop := n.start(t)
				request := podnettest.NewRequest("c1")
				request.MTU = 1400
				iface, err := network.Add(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if test.name != "in the middle of a nudge" {
					run(test.before, iface)
				} else {
					test.before(n, iface) // to the moment
				}
				stop()
				run(test.during, iface)
				late.Store(0)
				network, stop = n.start(t)
				defer stop()
				run(test.after, iface)
				readyWithin(t, network, iface, 20*time.Second)
				if int(late.Load()) != test.late {
					t.Errorf("%d late steps after the restart, want %d", late.Load(), test.late)
				}
				del(t, network, iface)
				nothingLeft(t, n)
			})
		})
	}
}

// HN-4: the vNIC comes at the very moment of DEL, and the same Pod again after it.
func TestVNICAtTheMomentOfDelete(t *testing.T) {
	const rounds = 1000
	random := rand.New(rand.NewPCG(3, 4))
	var sleep atomic.Int64 // how long a late step and a switch take in this round
	var stale atomic.Int32
	pause := func(ctx context.Context) error {
		select {
		case <-time.After(time.Duration(sleep.Load())):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	setUp := func(n *winNode) {
		n.cfg.LateSteps = []windows.LateStep{{Name: "late step", Run: func(ctx context.Context, _ ifstore.Interface, _ hostif.Adapter) error { return pause(ctx) }}}
		n.Bridge.Before("SetType", pause)
		n.Bridge.After("SetType", func(context.Context) error { stale.Add(1); return nil })
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		for round := range rounds {
			sleep.Store(random.Int64N(int64(4 * time.Millisecond)))
			id := fmt.Sprint("c", round%3) // names come again
			iface := add(t, network, id)
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			var both sync.WaitGroup
			comes := time.Duration(random.Int64N(int64(600 * time.Millisecond)))
			both.Go(func() {
				time.Sleep(comes)
				n.vnics.set(iface.Name, true)
				n.Bridge.Reopen(iface.Name)
			})
			wait := time.Duration(random.Int64N(int64(1200 * time.Millisecond)))
			both.Go(func() {
				time.Sleep(wait)
				del(t, network, iface)
			})
			both.Wait()
			n.vnics.set(iface.Name, false)
			if left := n.Leftovers(); len(left) > 0 {
				t.Fatalf("round %d: left: %v", round, left)
			}
			if round%50 == 49 { // the next life of a name, at once: what is late must not touch it
				before := stale.Load()
				next := add(t, network, id)
				after(50 * time.Millisecond)
				ports, err := n.Bridge.Ports(t.Context())
				if err != nil || len(ports) != 1 || ports[0].Type != "" || stale.Load() != before {
					t.Fatalf("round %d: the next life of %s has %+v, %v", round, next.Name, ports, err)
				}
				del(t, network, next)
			}
		}
		after(10 * time.Second)
		nothingLeft(t, n)
	})
}

// A switch that was under way when its port was deleted and made again.
func TestStaleSwitchSparesTheNextLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var held atomic.Bool
		n := newWinNode()
		n.Bridge.Before("SetType", func(context.Context) error {
			if held.CompareAndSwap(false, true) {
				<-release
			}
			return nil
		})
		network, stop := n.start(t)
		defer stop()
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		after(time.Second)
		if !held.Load() {
			t.Fatal("nothing is switched")
		}
		del(t, network, iface)
		n.vnics.set(iface.Name, false)
		next := add(t, network, "c1")
		if next.Name != iface.Name || next.Gen == iface.Gen {
			t.Fatalf("%+v after %+v", next, iface)
		}
		close(release)
		after(5 * time.Second)
		ports, err := n.Bridge.Ports(t.Context())
		if err != nil || len(ports) != 1 || ports[0].Gen != next.Gen || ports[0].Type != "" {
			t.Errorf("%+v, %v", ports, err)
		}
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, next, 2*time.Second)
	})
}

// DEL at every stage of the wait leaves nothing.
func TestDeleteAtEveryStage(t *testing.T) {
	for stage, set := range map[string]func(n *winNode, iface ifstore.Interface){
		"no vNIC":         func(*winNode, ifstore.Interface) {},
		"late step":       func(n *winNode, i ifstore.Interface) { n.vnics.set(i.Name, true) },
		"no number":       func(n *winNode, i ifstore.Interface) { n.Bridge.Slow(true); n.vnics.set(i.Name, true) },
		"error":           func(n *winNode, i ifstore.Interface) { n.vnics.set(i.Name, true) },
		"list that fails": func(n *winNode, i ifstore.Interface) { n.vnics.fail(errNotNow) },
	} {
		t.Run(stage, func(t *testing.T) {
			setUp := func(n *winNode) {
				if stage == "late step" {
					n.cfg.LateSteps = []windows.LateStep{{Name: "late step", Run: func(ctx context.Context, _ ifstore.Interface, _ hostif.Adapter) error {
						<-ctx.Done()
						return errors.New("it hung")
					}}}
				}
				if stage == "error" {
					n.opens = func(podnet.Port) error { return errNotNow }
				}
			}
			inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
				iface := add(t, network, "c1")
				set(n, iface)
				after(7 * time.Second)
				begun := time.Now()
				del(t, network, iface)
				if took := time.Since(begun); took > time.Second {
					t.Errorf("DEL took %v", took)
				}
				nothingLeft(t, n)
				before := slices.Clone(n.Bridge.Calls())
				after(time.Minute)
				nothingLeft(t, n)
				for _, call := range n.Bridge.Calls()[len(before):] {
					if call[:7] == "SetType" {
						t.Errorf("after DEL: %s", call)
					}
				}
			})
		})
	}
}
