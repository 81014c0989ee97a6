package interop

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// install puts flows into the switch in one bundle and fails on any error.
func install(t *testing.T, s *session, mods []ofp.FlowMod) {
	t.Helper()
	const id, flags = 11, ofp.BundleAtomic | ofp.BundleOrdered
	names := map[uint32]string{s.send(&ofp.BundleControl{BundleID: id, Kind: ofp.BundleOpenRequest, Flags: flags}): "open"}
	for i := range mods {
		names[s.send(&ofp.BundleAdd{BundleID: id, Flags: flags, Inner: &mods[i]})] = mods[i].String()
	}
	s.send(&ofp.BundleControl{BundleID: id, Kind: ofp.BundleCommitRequest, Flags: flags})
	s.until(func(m ofp.Message) bool {
		if e, ok := m.(*ofp.Error); ok {
			h, _ := e.Refused()
			t.Fatalf("%s: %s", e, names[h.XID])
		}
		c, ok := m.(*ofp.BundleControl)
		return ok && c.Kind == ofp.BundleCommitReply
	})
}

// CO-12: what the switch holds equals what was sent.
func TestReadBackEqualsWhatWasSent(t *testing.T) {
	sw := startBridge(t)
	if _, err := sw.Ofctl("add-group", "unix:"+sw.MgmtSock(bridge), "group_id=7,type=all,bucket=output:1"); err != nil {
		t.Fatal(err)
	}
	s := dial(t, sw.MgmtSock(bridge))
	var mods []ofp.FlowMod
	for _, c := range flowCases() {
		mods = append(mods, c.mod)
	}
	install(t, s, mods)
	held := make(map[ofp.FlowKey]ofp.FlowStats)
	for _, f := range s.flows() {
		held[f.Key()] = f
	}
	if len(held) != len(mods) {
		t.Errorf("%d flows were sent, the switch holds %d", len(mods), len(held))
	}
	for i := range mods {
		f, ok := held[mods[i].Key()]
		if !ok {
			t.Errorf("not found again: %s", mods[i])
			continue
		}
		if diff := cmp.Diff(mods[i].Canonical(), f.Canonical()); diff != "" {
			t.Errorf("sent %s\nheld %s\n%s", mods[i], f, diff)
		}
		if f.Duration < 0 || f.Packets != 0 || f.Bytes != 0 {
			t.Errorf("counters of %s: %v, %d packets", mods[i], f.Duration, f.Packets)
		}
	}
	checkDumpText(t, s)
	// Sending back what was read changes nothing.
	var again []ofp.FlowMod
	for _, f := range s.flows() {
		again = append(again, ofp.FlowMod{Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, IdleTimeout: f.IdleTimeout,
			HardTimeout: f.HardTimeout, Flags: f.Flags, Importance: f.Importance, Match: f.Match, Instructions: f.Instructions})
	}
	install(t, s, again)
	if got := len(s.flows()); got != len(mods) {
		t.Errorf("the flows came back as %d others", got-len(mods))
	}
	// A strict delete of each finds it.
	for i := range mods {
		mods[i].Command, mods[i].Flags, mods[i].Instructions = ofp.FlowDeleteStrict, 0, nil
		mods[i].CookieMask = ^uint64(0)
	}
	install(t, s, mods)
	if left := s.flows(); len(left) != 0 {
		t.Errorf("%d flows are left after strict deletes, the first: %s", len(left), left[0])
	}
}

// checkDumpText dumps the flows and compares our text of each with the one that
// ovs-ofctl prints for the same frame, which it must also read back as a flow.
func checkDumpText(t *testing.T, s *session) {
	t.Helper()
	s.frames = nil
	flows := s.flows()
	var theirs, ours []string
	for _, text := range ovsText(t, s.frames) {
		_, list, _ := strings.Cut(text, "\n")
		for line := range strings.Lines(list) {
			theirs = append(theirs, strings.TrimSpace(line))
		}
	}
	if len(theirs) != len(flows) {
		t.Fatalf("ovs-ofctl prints %d flows, we read %d", len(theirs), len(flows))
	}
	volatile := func(item string) bool { return strings.HasPrefix(item, "duration=") || item == "idle_age=0" }
	for i, f := range flows {
		ours = append(ours, f.String())
		got, want := slices.DeleteFunc(items(ours[i]), volatile), slices.DeleteFunc(items(theirs[i]), volatile)
		if !slices.Equal(got, want) {
			t.Errorf("we print\n%s\novs-ofctl\n%s", ours[i], theirs[i])
		}
	}
	parseFlows(t, ours)
}

// TestDumpInSeveralParts reads more flows than one message holds; the answer
// of a bundle of thousands too.
func TestDumpInSeveralParts(t *testing.T) {
	s := dial(t, startBridge(t).MgmtSock(bridge))
	var mods []ofp.FlowMod
	for i := range 3000 {
		mods = append(mods, flowOf(5, 100, ofp.Match{ofp.InPort(uint32(i + 1)), ofp.Reg(3, uint32(i), ^uint32(0))},
			apply(ofp.SetField(ofp.Reg(1, uint32(i), ^uint32(0))), ofp.Output{Port: uint32(i + 1)}), ofp.GotoTable(9)))
	}
	install(t, s, mods)
	s.frames = nil
	flows := s.flows()
	if len(s.frames) < 2 {
		t.Errorf("the dump came in %d parts", len(s.frames))
	}
	want, got := make([]ofp.CanonicalFlow, 0, len(mods)), make([]ofp.CanonicalFlow, 0, len(flows))
	for i := range mods {
		want = append(want, mods[i].Canonical())
	}
	for i := range flows {
		got = append(got, flows[i].Canonical())
	}
	byKey := func(a, b ofp.CanonicalFlow) int {
		return slices.Compare([]byte(a.Match), []byte(b.Match))
	}
	slices.SortFunc(want, byKey)
	slices.SortFunc(got, byKey)
	if !slices.Equal(want, got) {
		t.Errorf("%d flows were sent, %d others came back", len(want), len(got))
	}
}

// TestDumpWithForeignActions: a table full of actions that the codec has no
// type for still reads, flow by flow (CO-6).
func TestDumpWithForeignActions(t *testing.T) {
	sw := startBridge(t)
	to := "unix:" + sw.MgmtSock(bridge)
	if _, err := sw.Ofctl("add-group", to, "group_id=1,type=all,bucket=output:1"); err != nil {
		t.Fatal(err)
	}
	for _, f := range ofctlFlows {
		if _, err := sw.Ofctl("add-flow", to, f); err != nil {
			t.Fatal(err)
		}
	}
	s := dial(t, sw.MgmtSock(bridge))
	flows := s.flows()
	if len(flows) != len(ofctlFlows) {
		t.Errorf("%d flows were added, %d read", len(ofctlFlows), len(flows))
	}
	raw := 0
	for _, f := range flows {
		for _, in := range f.Instructions {
			if apply, ok := in.(ofp.ApplyActions); ok && slices.ContainsFunc(apply, isRaw) {
				raw++
			}
		}
	}
	if raw < 8 {
		t.Errorf("%d flows have raw actions", raw)
	}
}

func isRaw(a ofp.Action) bool { _, ok := a.(ofp.RawAction); return ok }
