package podflows_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
)

// record is a Sender that writes down what it gets and answers as told.
type record struct {
	nothing
	groups  [][]ofclient.Group
	sent    []ofp.Message
	stats   []ofp.FlowStats
	refuse  map[string]error // by group name
	sendErr error
}

func (r *record) Apply(_ context.Context, groups []ofclient.Group) []error {
	r.groups = append(r.groups, groups)
	errs := make([]error, len(groups))
	for n, g := range groups {
		errs[n] = r.refuse[g.Name]
	}
	return errs
}

func (r *record) Send(_ context.Context, msgs ...ofp.Message) error {
	r.sent = append(r.sent, msgs...)
	return r.sendErr
}

func (r *record) FlowStats(context.Context, ofp.FlowStatsRequest) ([]ofp.FlowStats, error) {
	return r.stats, nil
}

func TestInstallSendsOneGroupForEachInterface(t *testing.T) {
	bad := iface("bad", 0, 0)
	refused := errors.New("refused")
	a, b := iface("a", 3, 0, "10.10.0.3/24"), iface("b", 4, 0, "10.10.0.4/24")
	r := &record{refuse: map[string]error{"ns/b (b/eth0)": refused}}
	errs := newInstaller(t, r).Install(t.Context(), []ifstore.Interface{a, bad, b})
	if errs[0] != nil || !errors.Is(errs[1], podnet.ErrNoNumber) || !errors.Is(errs[2], refused) {
		t.Errorf("results %v", errs)
	}
	if len(r.groups) != 1 || len(r.groups[0]) != 2 {
		t.Errorf("%d calls, want one with the two good interfaces", len(r.groups))
	}
}

// A delegated IPAM plugin may give anything; the gateway's address would draw everybody's traffic.
func TestInstallRefusesTheGatewaysAddress(t *testing.T) {
	r := &record{}
	i := newInstaller(t, r)
	good := iface("good", 9, 0, "10.10.0.9/24", "fd10::9/64")
	for _, addr := range testNode.Gateway.Addrs {
		thief := iface("thief", 3, 0, netip.PrefixFrom(addr, addr.BitLen()).String())
		errs := i.Install(t.Context(), []ifstore.Interface{thief, good})
		if !errors.Is(errs[0], podnet.ErrBadRequest) || !strings.Contains(errs[0].Error(), addr.String()) || errs[1] != nil {
			t.Errorf("Install with the gateway's %s: %v", addr, errs)
		}
		if err := i.Replace(t.Context(), good, thief); !errors.Is(err, podnet.ErrBadRequest) {
			t.Errorf("Replace with the gateway's %s: %v", addr, err)
		}
		// The gateway is not in a VLAN.
		thief.VLAN = 10
		if err := i.Install(t.Context(), []ifstore.Interface{thief})[0]; err != nil {
			t.Errorf("Install in a VLAN with the gateway's %s: %v", addr, err)
		}
	}
}

func TestUninstallNamesCookieAndExactMatch(t *testing.T) {
	r := &record{}
	i := newInstaller(t, r)
	f := iface("a", 3, 0, "10.10.0.3/24", "fd10::3/64")
	if err := i.Uninstall(t.Context(), []ifstore.Interface{f})[0]; err != nil {
		t.Fatal(err)
	}
	adds, err := i.Flows(f)
	if err != nil {
		t.Fatal(err)
	}
	dels := r.groups[0][0].Mods
	cookie, mask := podflows.CookieOf(f.Key)
	for n, d := range dels {
		if d.Command != ofp.FlowDeleteStrict || d.Key() != adds[n].Key() || d.Cookie != cookie || d.CookieMask != mask {
			t.Errorf("delete %v does not fit add %v", d, adds[n])
		}
	}
	if len(dels) != len(adds) {
		t.Errorf("%d deletes for %d flows", len(dels), len(adds))
	}
	// Both ends; TCP, UDP and SCTP apart over IPv6, where all at once would reach ICMPv6.
	if len(r.sent) != 2+6 {
		t.Errorf("%d flushes, want 2 for IPv4 and 6 for IPv6", len(r.sent))
	}
	for _, m := range r.sent {
		flush := m.(*ofp.CTFlush)
		if a := cmp.Or(flush.Orig.Src, flush.Orig.Dst); a.Is6() && (flush.Proto == 0 || flush.Proto == 58) {
			t.Errorf("flush %+v can reach an ICMPv6 connection", flush)
		}
	}
}

// A switch older than 3.1 cannot flush by OpenFlow: DEL goes on, and does not try again.
func TestUninstallLivesWithoutFlush(t *testing.T) {
	f := []ifstore.Interface{iface("a", 3, 0, "10.10.0.3/24")}
	for _, answer := range []*ofp.Error{
		{ErrType: ofp.ErrTypeBadRequest, Code: ofp.ErrBadRequestBadType},
		{ErrType: ofp.ErrTypeExperimenter, Experimenter: 0x2320, Code: 34},
	} {
		r := &record{sendErr: fmt.Errorf("wrapped: %w", answer)}
		i := newInstaller(t, r)
		for range 2 {
			if err := i.Uninstall(t.Context(), f)[0]; err != nil {
				t.Errorf("%v: %v", answer, err)
			}
		}
		if len(r.sent) != 2 {
			t.Errorf("%v: asked again after the refusal (%d messages)", answer, len(r.sent))
		}
		if err := i.Replay(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		if i.Uninstall(t.Context(), f); len(r.sent) != 4 {
			t.Errorf("%v: a new session was not asked again", answer)
		}
	}
	r := &record{sendErr: podnet.ErrNotConnected}
	if err := newInstaller(t, r).Uninstall(t.Context(), f)[0]; !errors.Is(err, podnet.ErrNotConnected) {
		t.Errorf("flush on a lost session: %v", err)
	}
}

func TestReplaceDeletesOnlyWhatTheNewLifeLacks(t *testing.T) {
	r := &record{}
	i := newInstaller(t, r)
	old := iface("a", 3, 0, "10.10.0.3/24")
	moved := old
	moved.OFPort = 9
	if err := i.Replace(t.Context(), old, moved); err != nil {
		t.Fatal(err)
	}
	if len(r.groups) != 1 || len(r.groups[0]) != 1 {
		t.Fatalf("sent %v, want one group", r.groups)
	}
	added := map[ofp.FlowKey]bool{}
	for _, m := range r.groups[0][0].Mods {
		if m.Command == ofp.FlowAdd {
			added[m.Key()] = true
		}
	}
	for _, m := range r.groups[0][0].Mods {
		if m.Command == ofp.FlowDeleteStrict && added[m.Key()] {
			t.Errorf("deleted and added: %v", m)
		}
	}
	if err := i.Replace(t.Context(), old, iface("a", 0, 0)); !errors.Is(err, podnet.ErrNoNumber) {
		t.Errorf("replace by no number: %v", err)
	}
}

func TestReplay(t *testing.T) {
	var ifaces []ifstore.Interface
	for n := range uint32(300) {
		ifaces = append(ifaces, iface(fmt.Sprintf("pod%d", n), n+2, 0, fmt.Sprintf("10.11.%d.%d/16", n>>8, n&0xff)))
	}
	r := &record{stats: []ofp.FlowStats{{Cookie: 0x706f_007_000000001}, {Cookie: 0x706f_fff_000000001}}}
	i := newInstaller(t, r)
	if err := i.Replay(t.Context(), r, ifaces); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for n, groups := range r.groups[1 : len(r.groups)-1] {
		mods := 0
		for _, g := range groups {
			mods += len(g.Mods)
			for _, m := range g.Mods {
				if m.Cookie>>36 != 0x706f_001 { // after fff comes 000, which no replay uses, then 001
					t.Fatalf("round %#x", m.Cookie>>36&0xfff)
				}
			}
		}
		seen += len(groups)
		if mods > 2000 {
			t.Errorf("bundle %d has %d changes", n, mods)
		}
	}
	if seen != len(ifaces) {
		t.Errorf("%d interfaces sent, want %d", seen, len(ifaces))
	}
	last := r.groups[len(r.groups)-1][0].Mods
	if len(last) != 2 || last[0].Command != ofp.FlowDelete || last[0].Cookie != 0x706f_007_000000000 || last[1].CookieMask != 0xffff_fff_000000000 {
		t.Errorf("stale rounds deleted by %v", last)
	}
}

func TestReplayTellsASessionsEndFromAnInterfacesFault(t *testing.T) {
	a, b := iface("a", 3, 0, "10.10.0.3/24"), iface("b", 4, 0, "10.10.0.4/24")
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"ns/a (a/eth0)", &ofclient.FlowError{Group: "a", Cause: &ofp.Error{}}, false},
		{"ns/a (a/eth0)", podnet.ErrOutcomeUnknown, true},
		{"the node", &ofclient.FlowError{Group: "the node", Cause: &ofp.Error{}}, true},
		{"earlier rounds", podnet.ErrNotConnected, true},
	} {
		r := &record{refuse: map[string]error{test.name: test.err}, stats: []ofp.FlowStats{{Cookie: 0x706f_007_000000001}}}
		if err := newInstaller(t, r).Replay(t.Context(), r, []ifstore.Interface{a, b}); (err != nil) != test.want {
			t.Errorf("%v for %s: replay answers %v", test.err, test.name, err)
		}
	}
}

// Over the whole client, with the switch restarting in between.
func TestOverAClientAndAFakeSwitch(t *testing.T) {
	sw := oftest.New()
	t.Cleanup(sw.Close)
	ifaces := []ifstore.Interface{iface("a", 3, 0, "10.10.0.3/24", "fd10::3/64"), iface("b", 4, 10, "10.10.0.4/24")}
	var i *podflows.Installer
	client, err := ofclient.New(ofclient.Config{Dial: sw.Dial, Replay: func(ctx context.Context, conn *ofclient.Conn) error {
		return i.Replay(ctx, conn, ifaces)
	}})
	if err != nil {
		t.Fatal(err)
	}
	i = newInstaller(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- client.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })

	check := func() {
		t.Helper()
		missing, stale, err := i.Audit(t.Context(), ifaces)
		if missing != 0 || stale != 0 || err != nil {
			t.Fatalf("audit: %d missing, %d stale, %v", missing, stale, err)
		}
	}
	check()
	flows := sw.Flows()
	// What somebody takes away or puts in is found.
	sw.SetFlows(flows[1:])
	if missing, _, _ := i.Audit(t.Context(), ifaces); missing != 1 {
		t.Errorf("%d missing, want 1", missing)
	}
	sw.SetFlows(append(slices.Clone(flows), ofp.FlowMod{Table: 3, Cookie: 0x706f << 48}))
	if _, stale, _ := i.Audit(t.Context(), ifaces); stale != 1 {
		t.Errorf("%d stale, want 1", stale)
	}
	var changed []ofp.FlowMod
	for _, m := range flows {
		if m.Table == podflows.TableSwitching && strings.Contains(m.String(), "0a:58:00:00:00:03") {
			m.Instructions = nil
		}
		changed = append(changed, m)
	}
	sw.SetFlows(changed)
	if err := i.CheckFlows(t.Context(), ifaces[0]); err == nil || !strings.Contains(err.Error(), "Switching") {
		t.Errorf("a flow with other actions: %v", err)
	}
	if err := i.CheckFlows(t.Context(), ifaces[1]); err != nil {
		t.Error(err)
	}
	sw.Restart()
	for client.Status().Reconnects == 0 {
		if _, err := client.Ports(t.Context()); err != nil && !errors.Is(err, podnet.ErrNotConnected) {
			t.Fatal(err)
		}
	}
	check()
	if again := sw.Flows(); len(again) != len(flows) {
		t.Errorf("%d flows after the restart, %d before", len(again), len(flows))
	}
}

// The kernel datapath refuses to write the flags of an advertisement. The node
// does without, and does not ask again.
func TestADatapathThatCannotAnswerND(t *testing.T) {
	r := &record{refuse: map[string]error{"the node's ND answers": &ofclient.FlowError{Cause: &ofp.Error{ErrType: ofp.ErrTypeBadAction, Code: 15}}}}
	i := newInstaller(t, r)
	all := len(i.NodeFlows())
	for range 2 {
		if err := i.Replay(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.SetNode(t.Context(), testNode); err != nil {
		t.Fatal(err)
	}
	if len(r.groups) != 3 || len(r.groups[0]) != 2 || len(r.groups[1]) != 1 || len(r.groups[2]) != 1 {
		t.Errorf("groups %v", r.groups)
	}
	if left := len(i.NodeFlows()); left != all-3 {
		t.Errorf("%d of %d node flows expected on the switch, want the three answers left out", left, all)
	}
}
