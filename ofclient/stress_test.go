package ofclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
	"github.com/antrea-lite/podnet/podnet"
)

// Requests whose answer never comes do not pile up, though the peer lives (SC-4).
func TestLostRepliesEndTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial, EchoInterval: time.Second})
		synctest.Wait()
		sw.SetFaults(func(f *oftest.Faults) {
			f.OnMessage = func(session int, _ uint32, m ofp.Message) oftest.Verdict {
				if _, ok := m.(*ofp.FlowStatsRequest); ok && session == 1 {
					return oftest.Drop
				}
				return oftest.Pass
			}
		})
		start := time.Now()
		var wg sync.WaitGroup
		var notConnected, tryAgain atomic.Int64
		for range 2000 {
			wg.Go(func() {
				_, err := c.FlowStats(t.Context(), ofp.FlowStatsRequest{})
				switch {
				case errors.Is(err, podnet.ErrNotConnected) && strings.Contains(err.Error(), "a reply was lost"):
					notConnected.Add(1)
				case errors.Is(err, podnet.ErrTryAgain):
					tryAgain.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if notConnected.Load() != 1024 || tryAgain.Load() != 976 {
			t.Errorf("%d lost, %d refused", notConnected.Load(), tryAgain.Load())
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("after %v", d)
		}
		if _, err := c.FlowStats(t.Context(), ofp.FlowStatsRequest{}); err != nil {
			t.Error(err)
		}
	})
}

// Malformed contents cost one message, a malformed length costs the session.
func TestMalformedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		var undecodable, unexpected int
		c := run(t, ofclient.Config{Dial: sw.Dial, Observer: ofclient.Observer{Dropped: func(d ofclient.Drop) {
			switch d {
			case ofclient.DropUndecodable:
				undecodable++
			case ofclient.DropUnexpected:
				unexpected++
			}
		}}})
		synctest.Wait()
		whole := frame(t, 0, &ofp.PortStatus{Desc: port(1, "a")})
		for n := ofp.HeaderLen; n < len(whole); n++ { // PORT_STATUS of every length
			cut := bytes.Clone(whole[:n])
			cut[3] = byte(n)
			sw.SendRaw(cut)
		}
		for n := range 61 { // PACKET_IN of length 0 to 60
			sw.SendRaw(frame(t, 0, &ofp.Unknown{MessageType: ofp.TypePacketIn, Body: make([]byte, n)}))
		}
		sw.SendRaw(frame(t, 0x1234567, &ofp.BarrierReply{})) // nobody asked
		sw.SendRaw(frame(t, 0, &ofp.Unknown{MessageType: 99}))
		synctest.Wait()
		if err := apply(t, c, pod(1, 1)); err != nil {
			t.Error(err)
		}
		if _, ever := sw.Sessions(); ever != 1 || undecodable < 50 || unexpected != 63 {
			t.Errorf("%d sessions, %d undecodable, %d unexpected", ever, undecodable, unexpected)
		}
		sw.SendRaw([]byte{6, 10, 0, 7, 0, 0, 0, 0})
		time.Sleep(time.Second)
		if err := apply(t, c, pod(1, 1)); err != nil {
			t.Error(err)
		}
		if st := c.Status(); st.Reconnects != 1 || !strings.Contains(st.LastError, "lost its framing") {
			t.Errorf("%+v", st)
		}
	})
}

// An answer that cannot be read fails its request and no other.
func TestMalformedAnswerFailsItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial})
		synctest.Wait()
		sw.SetFaults(func(f *oftest.Faults) {
			f.OnMessage = func(_ int, xid uint32, m ofp.Message) oftest.Verdict {
				if _, ok := m.(*ofp.FlowStatsRequest); ok {
					sw.SendRaw([]byte{6, byte(ofp.TypeMultipartReply), 0, 20, byte(xid >> 24), byte(xid >> 16), byte(xid >> 8), byte(xid), 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0})
					return oftest.Drop
				}
				return oftest.Pass
			}
		})
		if _, err := c.FlowStats(t.Context(), ofp.FlowStatsRequest{}); err == nil || !strings.Contains(err.Error(), "decode MULTIPART_REPLY") {
			t.Error(err)
		}
		if err := apply(t, c, pod(1, 1)); err != nil {
			t.Error(err)
		}
	})
}

func TestFramesInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.SplitWrites = 1 })
		for n := range uint32(10) {
			sw.AddPort(port(n+1, fmt.Sprintf("p%d", n)))
		}
		c := run(t, ofclient.Config{Dial: sw.Dial})
		if err := apply(t, c, pod(1, 3)); err != nil {
			t.Error(err)
		}
		if ports, err := c.Ports(t.Context()); err != nil || len(ports) != 10 {
			t.Errorf("%d ports, %v", len(ports), err)
		}
	})
}

// RC-12: a switch that flaps costs no goroutine and no caller hangs.
func TestFlappingSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		const seed = 12
		t.Log("seed", seed)
		rng := rand.New(rand.NewPCG(seed, seed))
		sw.SetFaults(func(f *oftest.Faults) { f.ReplyDelay = 100 * time.Microsecond })
		before := runtime.NumGoroutine()
		c := run(t, ofclient.Config{Dial: sw.Dial, BackoffMin: time.Millisecond, BackoffMax: 4 * time.Millisecond,
			Replay: func(ctx context.Context, conn *ofclient.Conn) error {
				return errors.Join(conn.Apply(ctx, []ofclient.Group{pod(0, 2)})...)
			}})
		w := c.WatchPorts()
		defer w.Close()
		sw.AddPort(port(1, "a"))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var ok, notConnected, unknown atomic.Int64
		for n := range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					switch err := c.Apply(ctx, []ofclient.Group{pod(n+1, 2)})[0]; {
					case err == nil:
						ok.Add(1)
					case errors.Is(err, podnet.ErrNotConnected):
						notConnected.Add(1)
					case errors.Is(err, podnet.ErrOutcomeUnknown):
						unknown.Add(1)
					case ctx.Err() == nil:
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Go(func() { // a health check must see a whole state at any time
			for ctx.Err() == nil {
				if st := c.Status(); st.Ready && (!st.Connected || st.DatapathID == 0) {
					t.Errorf("half a state: %+v", st)
				}
				if d, ok := c.Port("a"); ok && d.Number != 1 {
					t.Errorf("port a: %+v", d)
				}
				time.Sleep(50 * time.Microsecond)
			}
		})
		for range 1000 {
			time.Sleep(time.Duration(rng.IntN(14_000)) * time.Microsecond)
			sw.DropSessions()
		}
		cancel()
		wg.Wait()
		if _, ever := sw.Sessions(); ever < 500 {
			t.Errorf("%d sessions", ever)
		}
		if err := apply(t, c, pod(1, 2)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // sessions that were cut in the middle of something wait for no longer
		synctest.Wait()
		// Run, its session's four, the fake's two, and Run's starter in the test.
		if now := runtime.NumGoroutine(); now > before+9 {
			t.Errorf("%d goroutines, %d before", now, before)
		}
		t.Logf("%d applied, %d not sent, %d unknown", ok.Load(), notConnected.Load(), unknown.Load())
	})
}

// RC-9: a transaction that cannot begin leaves nothing behind.
func TestRefusedBundlesLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.RefuseOpen = &ofp.Error{ErrType: ofp.ErrTypeBundleFailed, Code: 5} })
		c := run(t, ofclient.Config{Dial: sw.Dial})
		synctest.Wait()
		before := runtime.NumGoroutine()
		for n := range 1500 { // more than the bound of pending requests
			if _, ok := errors.AsType[*ofp.Error](apply(t, c, pod(n, 2))); !ok {
				t.Fatal("no error of the switch")
			}
		}
		synctest.Wait()
		if now := runtime.NumGoroutine(); now > before {
			t.Errorf("%d goroutines, %d before", now, before)
		}
		sw.SetFaults(func(f *oftest.Faults) { f.RefuseOpen = nil })
		if err := apply(t, c, pod(1, 2)); err != nil {
			t.Error(err)
		}
		wantFlows(t, sw, pod(1, 2))
	})
}
