package ofclient_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
)

// newSwitch returns a fake switch that is closed with the test.
func newSwitch(t *testing.T) *oftest.Switch {
	sw := oftest.New()
	t.Cleanup(sw.Close)
	return sw
}

// run starts a client and stops it with the test.
func run(t testing.TB, cfg ofclient.Config) *ofclient.Client {
	t.Helper()
	return runContext(t, klog.NewContext(context.Background(), klog.Logger{}), cfg)
}

func runContext(t testing.TB, ctx context.Context, cfg ofclient.Config) *ofclient.Client {
	t.Helper()
	c, err := ofclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return c
}

// flow is the change that adds flow number n.
func flow(n int) ofp.FlowMod {
	addr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 32)
	return ofp.FlowMod{
		Command: ofp.FlowAdd, Table: 10, Priority: 200, Cookie: 0xabc0000 | uint64(n),
		Match:        ofp.Match{ofp.EthType(0x0800), ofp.IPv4Src(addr)},
		Instructions: ofp.Apply(ofp.Output{Port: 1}),
	}
}

// pod is a group of k flows that belong to Pod n.
func pod(n, k int) ofclient.Group {
	g := ofclient.Group{Name: fmt.Sprintf("default/pod-%d", n)}
	for i := range k {
		g.Mods = append(g.Mods, flow(100*n+i))
	}
	return g
}

// wantFlows compares the fake's table with the flows of groups.
func wantFlows(t *testing.T, sw *oftest.Switch, groups ...ofclient.Group) {
	t.Helper()
	var got []ofp.CanonicalFlow
	for _, m := range sw.Flows() {
		got = append(got, m.Canonical())
	}
	diffFlows(t, got, groups)
}

// diffFlows reports flows that are missing or too many. (cmp.Diff takes
// seconds for the thousands that some tests have.)
func diffFlows(t *testing.T, got []ofp.CanonicalFlow, groups []ofclient.Group) {
	t.Helper()
	want := make(map[ofp.CanonicalFlow]ofp.FlowMod)
	for _, g := range groups {
		for _, m := range g.Mods {
			want[m.Canonical()] = m
		}
	}
	extra := 0
	for _, f := range got {
		if _, ok := want[f]; !ok {
			extra++
			t.Logf("too many: table %d, priority %d, cookie %#x, match %x", f.Table, f.Priority, f.Cookie, f.Match)
		}
		delete(want, f)
	}
	for _, m := range want {
		t.Logf("missing: %.200v", m)
	}
	if extra+len(want) > 0 {
		t.Errorf("the switch has %d flows, %d of them too many, and %d are missing", len(got), extra, len(want))
	}
}

// apply applies one group with a minute's patience.
func apply(t *testing.T, s ofclient.Sender, g ofclient.Group) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return s.Apply(ctx, []ofclient.Group{g})[0]
}

func port(number uint32, name string) ofp.PortDesc {
	return ofp.PortDesc{Number: number, Name: name, HWAddr: [6]byte{2, 0, 0, 0, 0, byte(number)}, State: ofp.PortStateLive}
}

// refuse is a switch's error for a flow.
func refuse() *ofp.Error { return &ofp.Error{ErrType: ofp.ErrTypeBadAction, Code: 4} }

// ofFlow returns a fault that hits flow number n.
func ofFlow(n int) func(ofp.FlowMod) *ofp.Error {
	bad := flow(n)
	key := bad.Key()
	return func(m ofp.FlowMod) *ofp.Error {
		if m.Key() == key {
			return refuse()
		}
		return nil
	}
}

func either(a, b func(ofp.FlowMod) *ofp.Error) func(ofp.FlowMod) *ofp.Error {
	return func(m ofp.FlowMod) *ofp.Error {
		if e := a(m); e != nil {
			return e
		}
		return b(m)
	}
}

// kinds are the types of the messages that the switch got, in order.
func kinds(rs []oftest.Received) []string {
	var names []string
	for _, r := range rs {
		name := r.Message.Type().String()
		switch m := r.Message.(type) {
		case *ofp.BundleControl:
			name += " " + m.Kind.String()
		case *ofp.PortDescRequest:
			name += " PORT_DESC"
		}
		names = append(names, name)
	}
	return names
}

// count counts the messages of a type that the switch got.
func count(sw *oftest.Switch, want func(ofp.Message) bool) int {
	n := 0
	for _, r := range sw.Received() {
		if want(r.Message) {
			n++
		}
	}
	return n
}

func isKind(kind ofp.BundleKind) func(ofp.Message) bool {
	return func(m ofp.Message) bool {
		b, ok := m.(*ofp.BundleControl)
		return ok && b.Kind == kind
	}
}

func isType(typ ofp.Type) func(ofp.Message) bool {
	return func(m ofp.Message) bool { return m.Type() == typ }
}
