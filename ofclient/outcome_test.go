package ofclient_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
	"github.com/antrea-lite/podnet/podnet"
)

// Wherever the session ends, the error says truly whether the change may stand.
func TestOutcomeWhenTheSessionEnds(t *testing.T) {
	on := func(v oftest.Verdict, want func(ofp.Message) bool) func(int, uint32, ofp.Message) oftest.Verdict {
		return func(session int, _ uint32, m ofp.Message) oftest.Verdict {
			if session == 1 && want(m) {
				return v
			}
			return oftest.Pass
		}
	}
	barriers := 0
	inBundle := func(m ofp.Message) bool { // the first barrier belongs to the subscription
		if m.Type() == ofp.TypeBarrierRequest {
			barriers++
		}
		return m.Type() == ofp.TypeBarrierRequest && barriers > 1
	}
	for name, test := range map[string]struct {
		hook    func(int, uint32, ofp.Message) oftest.Verdict
		want    error
		outcome ofclient.BundleOutcome
		stands  bool
	}{
		"at the open":               {on(oftest.Close, isKind(ofp.BundleOpenRequest)), podnet.ErrNotConnected, ofclient.BundleAborted, false},
		"between open and add":      {on(oftest.Close, isType(ofp.TypeBundleAdd)), podnet.ErrNotConnected, ofclient.BundleAborted, false},
		"at the barrier":            {on(oftest.Close, inBundle), podnet.ErrNotConnected, ofclient.BundleAborted, false},
		"at the commit":             {on(oftest.Close, isKind(ofp.BundleCommitRequest)), podnet.ErrOutcomeUnknown, ofclient.BundleUnknown, false},
		"after the commit":          {on(oftest.CloseAfter, isKind(ofp.BundleCommitRequest)), podnet.ErrOutcomeUnknown, ofclient.BundleUnknown, true},
		"when the reply is missing": {nil, podnet.ErrOutcomeUnknown, ofclient.BundleUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newSwitch(t)
				barriers = 0
				sw.SetFaults(func(f *oftest.Faults) { f.OnMessage, f.DropCommits = test.hook, test.hook == nil })
				var outcomes []ofclient.BundleOutcome
				c := run(t, ofclient.Config{Dial: sw.Dial, Observer: ofclient.Observer{
					Bundle: func(o ofclient.BundleOutcome, mods int, _ time.Duration) {
						if mods != 5 {
							t.Errorf("%d changes in a bundle", mods)
						}
						outcomes = append(outcomes, o)
					}}})
				start := time.Now()
				err := apply(t, c, pod(1, 5))
				if !errors.Is(err, test.want) || errors.Is(err, podnet.ErrNotConnected) && errors.Is(err, podnet.ErrOutcomeUnknown) {
					t.Errorf("%v, want %v", err, test.want)
				}
				if d := time.Since(start); d > 20*time.Second {
					t.Errorf("it took %v", d)
				}
				synctest.Wait() // the fake may close before it has handled what it was sent
				if test.stands {
					wantFlows(t, sw, pod(1, 5))
				} else {
					wantFlows(t, sw)
				}
				// The next session works, and the change can be repeated whatever came of it.
				sw.SetFaults(func(f *oftest.Faults) { f.DropCommits = false })
				if err := apply(t, c, pod(1, 5)); err != nil {
					t.Error(err)
				}
				wantFlows(t, sw, pod(1, 5))
				if diff := cmp.Diff([]ofclient.BundleOutcome{test.outcome, ofclient.BundleCommitted}, outcomes); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Fact 27: the switch drops a bundle that is idle for ten seconds, a later add
// opens another of the same id in silence, and its commit is answered well.
func TestBundleThatTheSwitchLetExpireIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		opens := 0
		sw.SetFaults(func(f *oftest.Faults) {
			f.OnMessage = func(_ int, _ uint32, m ofp.Message) oftest.Verdict {
				if isKind(ofp.BundleOpenRequest)(m) {
					opens++
				}
				if m.Type() == ofp.TypeBundleAdd && opens == 1 {
					time.Sleep(6 * time.Second) // two of them: the first adds are lost
					if flow := m.(*ofp.BundleAdd).Inner.(*ofp.FlowMod); flow.Cookie == 0xabc0000|102 {
						time.Sleep(6 * time.Second)
					}
				}
				return oftest.Pass
			}
		})
		var outcomes []ofclient.BundleOutcome
		c := run(t, ofclient.Config{Dial: sw.Dial, EchoInterval: time.Minute, Observer: ofclient.Observer{
			Bundle: func(o ofclient.BundleOutcome, _ int, _ time.Duration) { outcomes = append(outcomes, o) }}})
		if err := c.Apply(t.Context(), []ofclient.Group{pod(1, 5)})[0]; err != nil {
			t.Fatal(err)
		}
		wantFlows(t, sw, pod(1, 5))
		if diff := cmp.Diff([]ofclient.BundleOutcome{ofclient.BundleTimeout, ofclient.BundleCommitted}, outcomes); diff != "" {
			t.Error(diff)
		}
	})
}

// A caller that leaves returns at once and is told how much it may assume.
func TestCallerOfApplyLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial})
		synctest.Wait()
		sw.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		var wg sync.WaitGroup
		for n, want := range []error{podnet.ErrOutcomeUnknown, nil} { // in flight, in the queue
			wg.Go(func() {
				err := c.Apply(ctx, []ofclient.Group{pod(n, 2)})[0]
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, podnet.ErrOutcomeUnknown) != (want != nil) {
					t.Errorf("call %d: %v", n, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if d := time.Since(start); d != time.Second {
			t.Errorf("returned after %v", d)
		}
		sw.Resume()
		if err := apply(t, c, pod(7, 1)); err != nil {
			t.Error(err)
		}
		// Nobody waited any more, so the bundle in flight was discarded.
		wantFlows(t, sw, pod(7, 1))
	})
}

func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial})
		ctx := t.Context()
		if err := c.Send(ctx, &ofp.SetConfig{MissSendLen: 1}); err != nil {
			t.Error(err)
		}
		m := flow(1)
		if err := c.Send(ctx, &m); err == nil || len(sw.Flows()) != 0 {
			t.Errorf("a flow change outside a bundle: %v", err)
		}
		// The fake knows no ROLE_REQUEST; the error of the first message counts.
		err := c.Send(ctx, &ofp.SetConfig{}, &ofp.Unknown{MessageType: ofp.TypeRoleRequest, Body: make([]byte, 16)}, &ofp.Unknown{MessageType: ofp.TypeMeterMod, Body: make([]byte, 8)})
		if _, ok := errors.AsType[*ofp.Error](err); !ok || !strings.Contains(err.Error(), "ROLE_REQUEST") {
			t.Error(err)
		}
		sw.Pause()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := c.Send(short, &ofp.SetConfig{}); !errors.Is(err, podnet.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caller leaves: %v", err)
		}
		if err := c.Send(ctx, &ofp.SetConfig{}); !errors.Is(err, podnet.ErrOutcomeUnknown) {
			t.Errorf("session lost: %v", err)
		}
	})
}

func TestFlowStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial})
		for n := range 3 {
			if err := apply(t, c, pod(n, 60)); err != nil {
				t.Fatal(err)
			}
		}
		all, err := c.FlowStats(t.Context(), ofp.FlowStatsRequest{Table: ofp.TableAll})
		if err != nil || len(all) != 180 {
			t.Errorf("%d flows, %v", len(all), err)
		}
		one, err := c.FlowStats(t.Context(), ofp.FlowStatsRequest{Table: ofp.TableAll, Cookie: 0xabc0000 | 159, CookieMask: ^uint64(0)})
		if want := flow(159); err != nil || len(one) != 1 || one[0].Canonical() != want.Canonical() {
			t.Errorf("%v, %v", one, err)
		}
	})
}
