package ofclient_test

import (
	"context"
	"errors"
	"fmt"
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

// tooLong has no wire form: a message holds 65535 bytes at most.
func tooLong() ofp.FlowMod {
	m := flow(999999)
	var actions []ofp.Action
	for range 5000 {
		actions = append(actions, ofp.Output{Port: 1})
	}
	m.Instructions = ofp.Apply(actions...)
	return m
}

// A group at fault must not take its neighbours with it, and none of its own
// changes may stand.
func TestOnlyTheGroupAtFaultIsRefused(t *testing.T) {
	bundleErr := func(code uint16) *ofp.Error { return &ofp.Error{ErrType: ofp.ErrTypeBundleFailed, Code: code} }
	groups := []ofclient.Group{pod(1, 3), pod(2, 3), {Name: "empty"}, pod(3, 3)}
	for name, test := range map[string]struct {
		faults oftest.Faults
		change func([]ofclient.Group)
		bad    map[int]string // index of the group at fault -> what its error says
	}{
		"none":                       {},
		"an add":                     {faults: oftest.Faults{FailAdd: ofFlow(201)}, bad: map[int]string{1: "flows of default/pod-2: "}},
		"the commit":                 {faults: oftest.Faults{FailCommit: ofFlow(201)}, bad: map[int]string{1: "flows of default/pod-2: "}},
		"the commit, not said which": {faults: oftest.Faults{FailCommit: ofFlow(201), HideFault: true}, bad: map[int]string{1: "OFPBFC_MSG_FAILED"}},
		"encoding":                   {change: func(g []ofclient.Group) { g[1].Mods = append(g[1].Mods, tooLong()) }, bad: map[int]string{1: "actions=output:1,"}},
		"two adds": {faults: oftest.Faults{FailAdd: either(ofFlow(100), ofFlow(302))},
			bad: map[int]string{0: "flows of default/pod-1: ", 3: "flows of default/pod-3: "}},
		"every open": {faults: oftest.Faults{RefuseOpen: bundleErr(5)},
			bad: map[int]string{0: "OFPBFC_OUT_OF_BUNDLES", 1: "OFPBFC_OUT_OF_BUNDLES", 3: "OFPBFC_OUT_OF_BUNDLES"}},
		"every open, by timeout": {faults: oftest.Faults{RefuseOpen: bundleErr(ofp.ErrBundleTimeout)},
			bad: map[int]string{0: "OFPBFC_TIMEOUT", 1: "OFPBFC_TIMEOUT", 3: "OFPBFC_TIMEOUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newSwitch(t)
				sw.SetFaults(func(f *oftest.Faults) { *f = test.faults })
				c := run(t, ofclient.Config{Dial: sw.Dial})
				send := append([]ofclient.Group(nil), groups...)
				if test.change != nil {
					test.change(send)
				}
				var stand []ofclient.Group
				for i, err := range c.Apply(t.Context(), send) {
					want, bad := test.bad[i]
					switch {
					case !bad && err != nil:
						t.Errorf("group %d: %v", i, err)
					case bad && (err == nil || !strings.Contains(err.Error(), want)):
						t.Errorf("group %d: %v, want it to say %q", i, err, want)
					case bad && len(err.Error()) > 1000:
						t.Errorf("group %d: the error has %d bytes", i, len(err.Error()))
					case bad && (errors.Is(err, podnet.ErrOutcomeUnknown) || errors.Is(err, podnet.ErrNotConnected)):
						t.Errorf("group %d: %v is a clear no", i, err)
					case !bad:
						stand = append(stand, send[i])
					}
				}
				wantFlows(t, sw, stand...)
			})
		})
	}
}

func TestFlowErrorTellsTheFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.FailAdd = ofFlow(101) })
		c := run(t, ofclient.Config{Dial: sw.Dial})
		err := apply(t, c, pod(1, 3))
		fe, ok := errors.AsType[*ofclient.FlowError](err)
		if !ok {
			t.Fatalf("%T: %v", err, err)
		}
		if want := flow(101); fe.Group != "default/pod-1" || fe.Mod.Key() != want.Key() {
			t.Errorf("FlowError of %s, %v", fe.Group, fe.Mod)
		}
		if cause, ok := errors.AsType[*ofp.Error](err); !ok || cause.ErrType != ofp.ErrTypeBadAction {
			t.Errorf("cause: %v", err)
		}
		for _, part := range []string{"default/pod-1", "nw_src=10.0.0.101", "OFPBAC_BAD_OUT_PORT"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
	})
}

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

func TestApplyCallsThatWaitShareABundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.ReplyDelay = time.Millisecond; f.FailAdd = ofFlow(5000) })
		c := run(t, ofclient.Config{Dial: sw.Dial})
		synctest.Wait()
		var wg sync.WaitGroup
		var groups []ofclient.Group
		for n := range 100 {
			g := pod(n, 1)
			if n != 50 {
				groups = append(groups, g)
			}
			wg.Go(func() {
				if err := apply(t, c, g); (err != nil) != (n == 50) {
					t.Errorf("%s: %v", g.Name, err)
				}
			})
		}
		wg.Wait()
		wantFlows(t, sw, groups...)
		if n := count(sw, isKind(ofp.BundleOpenRequest)); n > 3 { // the first alone, the rest, the rest without the one at fault
			t.Errorf("%d bundles", n)
		}
	})
}

// Big work is split between groups, never inside one unless it is huge.
func TestBundleSizes(t *testing.T) {
	for name, test := range map[string]struct {
		groups, mods int
		want         []int // adds of each bundle
	}{
		"many small": {groups: 500, mods: 20, want: []int{4080, 4080, 1840}},
		"one large":  {groups: 1, mods: 10000, want: []int{10000}},
		"one huge":   {groups: 1, mods: 20000, want: []int{16384, 3616}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newSwitch(t)
				c := run(t, ofclient.Config{Dial: sw.Dial})
				var groups []ofclient.Group
				for n := range test.groups {
					g := ofclient.Group{Name: fmt.Sprint(n)}
					for i := range test.mods {
						g.Mods = append(g.Mods, flow(n*test.mods+i))
					}
					groups = append(groups, g)
				}
				if err := errors.Join(c.Apply(t.Context(), groups)...); err != nil {
					t.Fatal(err)
				}
				if n := len(sw.Flows()); n != test.groups*test.mods {
					t.Errorf("%d flows", n)
				}
				var adds []int
				for _, r := range sw.Received() {
					switch {
					case isKind(ofp.BundleOpenRequest)(r.Message):
						adds = append(adds, 0)
					case r.Message.Type() == ofp.TypeBundleAdd:
						adds[len(adds)-1]++
					}
				}
				if diff := cmp.Diff(test.want, adds); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestPartOfAHugeGroupIsAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.FailAdd = ofFlow(19999) })
		c := run(t, ofclient.Config{Dial: sw.Dial})
		g := ofclient.Group{Name: "huge"}
		for i := range 20000 {
			g.Mods = append(g.Mods, flow(i))
		}
		err := apply(t, c, g)
		if _, ok := errors.AsType[*ofclient.FlowError](err); !ok || !errors.Is(err, podnet.ErrOutcomeUnknown) {
			t.Errorf("%v", err)
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
