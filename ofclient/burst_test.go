package ofclient_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
)

const (
	burstPorts  = 500
	burstRounds = 20 // 10,000 messages
)

// burst sends the rounds of port changes. A port's MAC address counts them.
// Every tenth port gets another number half way, every seventh is deleted at last.
func burst(sw *oftest.Switch, between func(round int)) {
	for round := range burstRounds {
		for n := range uint32(burstPorts) {
			switch {
			case round == burstRounds-1 && n%7 == 0:
				sw.DeletePort(burstNumber(n, round))
			case round == burstRounds/2 && n%10 == 0:
				sw.DeletePort(burstNumber(n, round-1))
			default:
				sw.ModifyPort(burstPort(n, round))
			}
		}
		between(round)
	}
}

func burstName(n uint32) string { return fmt.Sprintf("pod%05d", n) }

func burstNumber(n uint32, round int) uint32 {
	if n%10 == 0 && round > burstRounds/2 {
		return n + 1 + burstPorts
	}
	return n + 1
}

func burstPort(n uint32, round int) ofp.PortDesc {
	d := port(burstNumber(n, round), burstName(n))
	binary.BigEndian.PutUint16(d.HWAddr[4:], uint16(round))
	return d
}

func wantBurstOver(t *testing.T, c *ofclient.Client) {
	t.Helper()
	for n := range uint32(burstPorts) {
		got, ok := c.Port(burstName(n))
		want := burstPort(n, burstRounds-1)
		if gone := n%7 == 0; ok == gone || !gone && got != want {
			t.Errorf("port %s after the burst: %t %v, want %v", burstName(n), ok, got, want)
		}
	}
}

// RC-10, on the clock: a subscriber is stopped, 10,000 PORT_STATUS come, and a
// bundle sent among them is committed while the subscriber is still stopped.
// One entry for each port is kept, not one for each message.
func TestBurstWhileASubscriberIsStopped(t *testing.T) {
	sw := newSwitch(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a socket, whose buffers a pipe lacks
	if err != nil {
		t.Fatal(err)
	}
	sw.Serve(listener)
	ready := make(chan struct{})
	var once sync.Once
	c := run(t, ofclient.Config{Dial: ofclient.DialTCP(listener.Addr().String()), ListPeriod: -1, Observer: ofclient.Observer{
		Connected: func(_, isReady bool) {
			if isReady {
				once.Do(func() { close(ready) })
			}
		}}})
	stopped := c.WatchPorts()
	defer stopped.Close()
	<-ready

	middle := make(chan struct{})
	var sender sync.WaitGroup
	begun := time.Now()
	sender.Go(func() {
		burst(sw, func(round int) {
			if round == burstRounds/4 {
				close(middle)
			}
		})
	})
	<-middle
	sent := time.Now()
	if err := apply(t, c, pod(1, 10)); err != nil {
		t.Error(err)
	}
	took := time.Since(sent)
	sender.Wait()
	// An answer comes behind all that was told before it.
	if err := c.Send(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("the bundle took %v among %d messages in %v", took, burstPorts*burstRounds, time.Since(begun))
	if took > 10*time.Second {
		t.Errorf("the bundle took %v", took)
	}
	wantFlows(t, sw, pod(1, 10))
	waiting, ports, known := c.Retained(stopped)
	if waiting > burstPorts || ports > burstPorts || known > burstPorts {
		t.Errorf("after %d messages about %d ports are kept: %d names to tell, %d ports, %d known names", burstPorts*burstRounds, burstPorts, waiting, ports, known)
	}

	// The subscriber goes on.
	names, err := stopped.Next(t.Context())
	if err != nil || len(names) != burstPorts {
		t.Errorf("%d names are told, want each of %d ports once; %v", len(names), burstPorts, err)
	}
	wantBurstOver(t, c)
}

// Subscribers that are slow see fewer states, each newer than the one before,
// and the last one of every port.
func TestSlowSubscribersSeeNewerStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial, ListPeriod: -1})
		ctx, cancel := context.WithCancel(t.Context())
		seen := map[time.Duration]int{0: 0, time.Second: 0, 5 * time.Second: 0}
		var mu sync.Mutex
		var readers sync.WaitGroup
		for pause := range seen {
			w := c.WatchPorts()
			readers.Go(func() {
				defer w.Close()
				last := make(map[string]int)
				for {
					names, err := w.Next(ctx)
					if err != nil {
						break
					}
					for _, name := range names {
						round := burstRounds // gone
						if d, ok := c.Port(name); ok {
							round = int(binary.BigEndian.Uint16(d.HWAddr[4:]))
						}
						// One that moves is gone for a round.
						if before, ok := last[name]; ok && round < before && before != burstRounds {
							t.Errorf("reader that pauses %v: %s is at round %d after %d", pause, name, round, before)
						}
						last[name] = round
					}
					mu.Lock()
					seen[pause] += len(names)
					mu.Unlock()
					time.Sleep(pause)
				}
				for n := range uint32(burstPorts) {
					want := burstRounds - 1
					if n%7 == 0 {
						want = burstRounds
					}
					if last[burstName(n)] != want {
						t.Errorf("reader that pauses %v saw %s last at round %d, want %d", pause, burstName(n), last[burstName(n)], want)
					}
				}
			})
		}
		synctest.Wait()
		burst(sw, func(int) { time.Sleep(time.Second) })
		time.Sleep(10 * time.Second)
		cancel()
		readers.Wait()
		if seen[0] <= seen[time.Second]/2 || seen[time.Second] <= seen[5*time.Second] {
			t.Errorf("states seen by pause: %v; the slower, the fewer", seen)
		}
		wantBurstOver(t, c)
	})
}

// OF-19, OF-23: a switch that sends no PORT_STATUS, because the subscription got
// lost or the messages do. Lists find every change within a period, and say so.
func TestListsRepairAMissingSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) {
			f.OnMessage = func(_ int, _ uint32, m ofp.Message) oftest.Verdict {
				if _, ok := m.(*ofp.SetAsync); ok {
					return oftest.Drop
				}
				return oftest.Pass
			}
		})
		repaired := 0
		c := run(t, ofclient.Config{Dial: sw.Dial, ListPeriod: 30 * time.Second, Observer: ofclient.Observer{Repaired: func(n int) { repaired += n }}})
		w := c.WatchPorts()
		defer w.Close()
		synctest.Wait()
		sw.AddPort(port(1, "a"))
		wantNames(t, w, "nothing is told")
		time.Sleep(30 * time.Second)
		wantNames(t, w, "the list has it", "a")
		wantPorts(t, c, "the list has it", map[string]uint32{"a": 1})
		if repaired != 1 {
			t.Errorf("%d changes were reported as found by a list, want 1", repaired)
		}
		sw.DeletePort(1)
		time.Sleep(30 * time.Second)
		wantNames(t, w, "a list without it", "a")
		if repaired != 2 {
			t.Errorf("%d changes were reported as found by lists, want 2", repaired)
		}
	})
}
