package ofclient_test

import (
	"errors"
	"fmt"
	"slices"
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

// A message has 65535 bytes at most (CO-5). Around that size a flow is either
// applied as it is or refused with an error that names it; nothing is cut.
func TestFlowsAroundTheLongestMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c := run(t, ofclient.Config{Dial: sw.Dial})
		ok, tooLong := 0, 0
		for n := 4080; n <= 4096; n++ {
			for _, match := range []ofp.Match{nil, {ofp.InPort(1)}, {ofp.InPort(1), ofp.EthType(0x0800)}} { // 8 bytes more each
				m := ofp.FlowMod{Table: 1, Match: match, Instructions: ofp.Apply(slices.Repeat([]ofp.Action{ofp.Output{Port: 1}}, n)...)}
				sw.SetFlows(nil)
				switch _, fault := errors.AsType[*ofclient.FlowError](apply(t, c, ofclient.Group{Name: "large", Mods: []ofp.FlowMod{m, flow(1)}})); {
				case fault:
					tooLong++
					wantFlows(t, sw)
				default:
					ok++
					wantFlows(t, sw, ofclient.Group{Mods: []ofp.FlowMod{m, flow(1)}})
				}
			}
		}
		if st := c.Status(); ok == 0 || tooLong == 0 || st.Reconnects != 0 {
			t.Errorf("%d applied, %d refused, %+v", ok, tooLong, st)
		}
	})
}

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
