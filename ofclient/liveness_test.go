package ofclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
	"github.com/antrea-lite/podnet/podnet"
)

// A switch that is away for ten minutes is dialled all the time and found soon
// after it is back, and the log stays short.
func TestRedialsForEverAndLogsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.RefuseDial = errors.New("no such file") })
		var dials atomic.Int64
		var lines bytes.Buffer
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&lines)))
		c := runContext(t, klog.NewContext(context.Background(), logger), ofclient.Config{Dial: func(ctx context.Context) (net.Conn, error) {
			dials.Add(1)
			return sw.Dial(ctx)
		}})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := dials.Load(); n < 600 || n > 1210 {
			t.Errorf("%d attempts in ten minutes with pauses of 0.5 to 1 s", n)
		}
		if n := strings.Count(lines.String(), "\n"); n < 2 || n > 12 {
			t.Errorf("%d log lines in ten minutes:\n%s", n, lines.String())
		}
		if st := c.Status(); st.Connected || st.LastError != "no such file" {
			t.Errorf("%+v", st)
		}
		sw.SetFaults(func(f *oftest.Faults) { f.RefuseDial = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if st := c.Status(); !st.Ready || st.Reconnects != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A frozen switch is noticed within three echo intervals; what it was asked is answered then.
func TestDeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		var states []string
		var lost time.Time
		c := run(t, ofclient.Config{Dial: sw.Dial, EchoInterval: 2 * time.Second, Observer: ofclient.Observer{
			Connected: func(connected, ready bool) {
				states = append(states, fmt.Sprint(connected, ready))
				if !connected {
					lost = time.Now()
				}
			}}})
		time.Sleep(time.Minute + 1100*time.Millisecond)
		sw.Pause()
		paused := time.Now()
		err := c.Apply(t.Context(), []ofclient.Group{pod(1, 3)})[0]
		if !errors.Is(err, podnet.ErrNotConnected) {
			t.Error(err)
		}
		synctest.Wait()
		if d := lost.Sub(paused); d > 6*time.Second || d < 2*time.Second {
			t.Errorf("noticed after %v", d)
		}
		sw.Resume()
		if err := apply(t, c, pod(1, 3)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := strings.Join(states, ", "); got != "true false, true true, false false, true false, true true" {
			t.Errorf("states: %s", got)
		}
		if st := c.Status(); st.Reconnects != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A pause that is shorter costs nothing: what was sent is applied and answered (fact 14).
func TestShortFreezeKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial})
		synctest.Wait()
		sw.Pause()
		time.AfterFunc(9*time.Second, sw.Resume)
		if err := apply(t, c, pod(1, 3)); err != nil {
			t.Error(err)
		}
		if _, ever := sw.Sessions(); ever != 1 {
			t.Errorf("%d sessions", ever)
		}
	})
}

// The reader answers echo requests at once, whatever else waits (RC-22).
func TestEchoIsAnsweredUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		block := make(chan struct{})
		sw.SetFaults(func(f *oftest.Faults) {
			f.OnMessage = func(_ int, _ uint32, m ofp.Message) oftest.Verdict {
				if isKind(ofp.BundleCommitRequest)(m) {
					<-block
				}
				return oftest.Pass
			}
		})
		c := run(t, ofclient.Config{Dial: sw.Dial})
		w := c.WatchPorts() // never read
		defer w.Close()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for n := range 10_000 {
			wg.Go(func() { c.Apply(ctx, []ofclient.Group{pod(n, 1)}) })
		}
		synctest.Wait()
		for n := range uint32(20) {
			sw.Send(n+1, &ofp.EchoRequest{Data: []byte{byte(n)}})
			sw.PortStatus(ofp.PortAdded, port(n+1, fmt.Sprintf("p%d", n)))
		}
		synctest.Wait() // time stands still: the answers may not wait for anything
		close(block)    // the fake reads on
		synctest.Wait()
		n := uint32(0)
		for _, r := range sw.Received() {
			if m, ok := r.Message.(*ofp.EchoReply); ok {
				if n++; r.XID != n || len(m.Data) != 1 || m.Data[0] != byte(n-1) {
					t.Errorf("reply %d: xid %d, %v", n, r.XID, m.Data)
				}
			}
		}
		if n != 20 {
			t.Errorf("%d of 20 echo requests were answered", n)
		}
		cancel()
		wg.Wait()
	})
}

// RC-1: on a new session nobody gets in before the replay, whose failure makes another session.
func TestReplayComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		replays := 0
		c := run(t, ofclient.Config{Dial: sw.Dial, Replay: func(ctx context.Context, conn *ofclient.Conn) error {
			if replays++; replays == 2 {
				return errors.New("store not readable")
			}
			time.Sleep(time.Second)
			return errors.Join(conn.Apply(ctx, []ofclient.Group{pod(1, 5)})...)
		}})
		if err := apply(t, c, pod(2, 5)); err != nil {
			t.Fatal(err)
		}
		sw.Restart()
		synctest.Wait()
		if err := apply(t, c, pod(3, 5)); err != nil {
			t.Fatal(err)
		}
		wantFlows(t, sw, pod(1, 5), pod(3, 5))
		if st := c.Status(); replays != 3 || st.Reconnects != 2 || st.LastError != "replay: store not readable" {
			t.Errorf("%d replays, %+v", replays, st)
		}
	})
}

// A replay that waits for the switch ends with its session.
func TestReplayEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		ended := make(chan error, 10)
		c := run(t, ofclient.Config{Dial: sw.Dial, Replay: func(ctx context.Context, conn *ofclient.Conn) error {
			if now, ever := sw.Sessions(); ever == 1 && now == 1 {
				<-ctx.Done()
				ended <- ctx.Err()
				return ctx.Err()
			}
			return nil
		}})
		synctest.Wait()
		sw.DropSessions()
		synctest.Wait()
		if len(ended) != 1 {
			t.Error("the replay still runs")
		}
		if err := apply(t, c, pod(1, 1)); err != nil {
			t.Error(err)
		}
		if st := c.Status(); !strings.Contains(st.LastError, "read from the switch") {
			t.Errorf("the session's end is the cause, got %q", st.LastError)
		}
	})
}
