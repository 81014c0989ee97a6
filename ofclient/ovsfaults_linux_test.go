package ofclient_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

// RC-2: the switch is killed in the middle of many bundles. Every caller gets a
// true answer, the replay finishes, and afterwards the switch has what it should.
func TestOVSKilledDuringBundles(t *testing.T) {
	s := ovs(t)
	var mu sync.Mutex
	confirmed := make(map[int]bool)
	groups := func() []ofclient.Group {
		mu.Lock()
		defer mu.Unlock()
		var list []ofclient.Group
		for n := range confirmed {
			list = append(list, pod(n, 5))
		}
		return list
	}
	c := run(t, ofclient.Config{Dial: ofclient.DialUnix(s.MgmtSock("br0")), Replay: func(ctx context.Context, conn *ofclient.Conn) error {
		return errors.Join(conn.Apply(ctx, groups())...)
	}})
	if err := apply(t, c, pod(0, 5)); err != nil {
		t.Fatal(err)
	}
	confirmed[0] = true
	var ok, no, unknown atomic.Int64
	for round := range 3 {
		var wg sync.WaitGroup
		done := make(chan struct{}, 1000)
		for worker := range 16 {
			wg.Go(func() {
				for i := range 30 {
					n := 1 + round*1000 + worker*30 + i
					err := apply(t, c, pod(n, 5))
					switch {
					case err == nil:
						mu.Lock()
						confirmed[n] = true
						mu.Unlock()
						ok.Add(1)
					case errors.Is(err, podnet.ErrOutcomeUnknown):
						unknown.Add(1)
					case errors.Is(err, podnet.ErrNotConnected):
						no.Add(1)
					default:
						t.Errorf("pod %d: %v", n, err)
					}
					done <- struct{}{}
				}
			})
		}
		for range 150 {
			<-done
		}
		if err := s.KillVswitchd(); err != nil {
			t.Fatal(err)
		}
		if err := s.StartVswitchd(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
	}
	// What was confirmed between the replay's look at the list and the kill is
	// the caller's to order (the core holds a lock); here one more replay settles it.
	before := c.Status().Reconnects
	if err := s.KillVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := s.StartVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, c, pod(0, 5)); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, c, groups()...)
	if before != 3 {
		t.Errorf("%d reconnects after three kills", before)
	}
	t.Logf("%d applied, %d not sent, %d unknown", ok.Load(), no.Load(), unknown.Load())
}

// Fact 14: what is sent to a frozen switch is applied when it goes on. A freeze
// that is shorter than three echo intervals costs nothing but time.
func TestOVSFrozen(t *testing.T) {
	s := ovs(t)
	c := run(t, ofclient.Config{Dial: ofclient.DialUnix(s.MgmtSock("br0")), EchoInterval: time.Second})
	if err := apply(t, c, pod(1, 5)); err != nil {
		t.Fatal(err)
	}
	if err := s.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- apply(t, c, pod(2, 5)) }()
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	left := c.Apply(short, []ofclient.Group{pod(3, 5)})[0]
	if !errors.Is(left, context.DeadlineExceeded) {
		t.Errorf("caller with little patience: %v", left)
	}
	if err := s.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
	if st := c.Status(); st.Reconnects != 0 {
		t.Errorf("%+v", st)
	}
	if errors.Is(left, podnet.ErrOutcomeUnknown) { // it shared the bundle of pod 2: repair
		undo := pod(3, 5)
		for i := range undo.Mods {
			undo.Mods[i].Command = ofp.FlowDeleteStrict
		}
		if err := apply(t, c, undo); err != nil {
			t.Error(err)
		}
	}
	wantSwitch(t, c, pod(1, 5), pod(2, 5))

	// Longer: the session is given up, and what was waiting gets a true answer.
	if err := s.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err := apply(t, c, pod(4, 5))
	if !errors.Is(err, podnet.ErrNotConnected) || time.Since(start) > 4*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if err := s.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, c, pod(5, 5)); err != nil {
		t.Error(err)
	}
	// The bundle of the session that died was never committed: nothing of it stands.
	wantSwitch(t, c, pod(1, 5), pod(2, 5), pod(5, 5))
}

// Fact 27 on the real switch: a commit that comes more than ten seconds after
// the adds finds no bundle. The answer must be no, and the next try works.
func TestOVSBundleExpires(t *testing.T) {
	s := ovs(t)
	held := make(chan struct{})
	// From the moment of the commit: the switch counts from the bundle's last message.
	expire := sync.OnceFunc(func() { time.AfterFunc(13*time.Second, func() { close(held) }) })
	commit := isKind(ofp.BundleCommitRequest)
	var mu sync.Mutex
	var outcomes []ofclient.BundleOutcome
	c := run(t, ofclient.Config{
		Dial: holding(ofclient.DialUnix(s.MgmtSock("br0")), func(m ofp.Message) bool {
			if !commit(m) {
				return false
			}
			expire()
			return true
		}, held),
		// Two pieces wait behind the held one; neither deadline may end the session.
		EchoInterval: time.Minute, WriteTimeout: time.Minute,
		Observer: ofclient.Observer{Bundle: func(o ofclient.BundleOutcome, _ int, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, o)
		}},
	})
	if err := apply(t, c, pod(1, 5)); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, c, pod(1, 5))
	mu.Lock()
	defer mu.Unlock()
	if want := []ofclient.BundleOutcome{ofclient.BundleTimeout, ofclient.BundleCommitted}; !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %v, want %v", outcomes, want)
	}
}

// Changing protocols closes the sessions of the management socket (fact 30); the client comes back.
func TestOVSClosesTheSession(t *testing.T) {
	s := ovs(t)
	c := run(t, ofclient.Config{Dial: ofclient.DialUnix(s.MgmtSock("br0")), ListPeriod: 50 * time.Millisecond})
	if err := apply(t, c, pod(1, 5)); err != nil {
		t.Fatal(err)
	}
	w := c.WatchPorts()
	defer w.Close()
	until(t, w, "the first session", func() bool { return c.Status().Ready })
	vsctl(t, s, "set", "bridge", "br0", "protocols=OpenFlow13,OpenFlow15")
	until(t, w, "the second session", func() bool { st := c.Status(); return st.Ready && st.Reconnects == 1 })
	if err := apply(t, c, pod(2, 5)); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, c, pod(1, 5), pod(2, 5))
	// And when the bridge is away for a while.
	vsctl(t, s, "del-br", "br0")
	tells(t, func(ctx context.Context) error { return c.Apply(ctx, []ofclient.Group{pod(3, 5)})[0] }, func(err error) bool {
		return errors.Is(err, podnet.ErrNotConnected) && strings.Contains(err.Error(), "does the bridge exist?")
	})
	if err := s.AddBridge("br0", "netdev"); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, c, pod(3, 5)); err != nil {
		t.Fatal(err)
	}
	wantSwitch(t, c, pod(3, 5))
}

func TestOVSWithoutOpenFlow15(t *testing.T) {
	s := ovs(t)
	vsctl(t, s, "set", "bridge", "br0", "protocols=OpenFlow10,OpenFlow13")
	c := run(t, ofclient.Config{Dial: ofclient.DialUnix(s.MgmtSock("br0"))})
	tells(t, func(ctx context.Context) error { return c.Apply(ctx, []ofclient.Group{pod(1, 1)})[0] }, func(err error) bool {
		return errors.Is(err, podnet.ErrNotConnected) && strings.Contains(err.Error(), "add OpenFlow15 to the bridge's protocols column")
	})
	// The remedy works without anyone's help.
	vsctl(t, s, "add", "bridge", "br0", "protocols", "OpenFlow15")
	if err := apply(t, c, pod(1, 1)); err != nil {
		t.Error(err)
	}
}
