package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// TestFlowsMeanTheSameToOVS lets ovs-ofctl read each flow three times: as it
// was written by hand, as we print it and as we encode it.
func TestFlowsMeanTheSameToOVS(t *testing.T) {
	var hand, ours []string
	var frames [][]byte
	for _, c := range flowCases() {
		hand = append(hand, c.text)
		ours = append(ours, c.mod.String())
		frames = append(frames, encode(t, 1, &c.mod))
	}
	handRead, oursRead, framesRead := parseFlows(t, hand), parseFlows(t, ours), ovsText(t, frames)
	for i, c := range flowCases() {
		want := withoutXID(handRead[i])
		if got := withoutXID(oursRead[i]); got != want {
			t.Errorf("text %s\nis to ovs-ofctl\n%s\nwant\n%s", c.mod, got, want)
		}
		if got := withoutXID(framesRead[i]); got != want {
			t.Errorf("frame %x\nis to ovs-ofctl\n%s\nwant\n%s", frames[i], got, want)
		}
	}
}

// TestTextOfOtherCommands lets ovs-ofctl read our text of what is no add, too,
// and compares what it then sends with what we would.
func TestTextOfOtherCommands(t *testing.T) {
	match := ofp.Match{ofp.InPort(3), ofp.EthType(0x0800)}
	mods := []ofp.FlowMod{
		{Command: ofp.FlowDelete, Table: ofp.TableAll, Cookie: 0x5e00, CookieMask: 0xff00},
		{Command: ofp.FlowDelete, Table: 3, OutPort: 7, OutGroup: 9, Match: match},
		{Command: ofp.FlowDeleteStrict, Table: 3, Priority: 77, Cookie: 5, CookieMask: ^uint64(0), Match: match},
		{Command: ofp.FlowModify, Table: 3, Match: match, Instructions: ofp.Apply(ofp.Output{Port: 1})},
		{Command: ofp.FlowModifyStrict, Table: 3, Priority: 5, Match: match, Instructions: []ofp.Instruction{ofp.GotoTable(4)}},
	}
	for _, c := range flowCases() {
		mods = append(mods, c.mod)
	}
	var lines []string
	for i := range mods {
		lines = append(lines, mods[i].String())
	}
	sw := startBridge(t)
	file := filepath.Join(t.TempDir(), "flows")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startRelay(t, sw.MgmtSock(bridge))
	if _, err := sw.Ofctl("add-group", "unix:"+sw.MgmtSock(bridge), "group_id=7,type=all,bucket=output:1"); err != nil {
		t.Fatal(err)
	}
	if out, err := sw.Ofctl("--no-names", "--bundle", "add-flows", "unix:"+r.path, file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.stop()
	up, _ := r.take(t)
	var sent []*ofp.FlowMod
	for _, frame := range up {
		_, m, err := ofp.Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		if add, ok := m.(*ofp.BundleAdd); ok {
			sent = append(sent, add.Inner.(*ofp.FlowMod))
		}
	}
	if len(sent) != len(mods) {
		t.Fatalf("ovs-ofctl sent %d flows of %d", len(sent), len(mods))
	}
	for i, got := range sent {
		want := mods[i]
		if want.Command == ofp.FlowDelete || want.Command == ofp.FlowModify {
			got.Priority = 0 // ignored there; ovs-ofctl fills in its default
		}
		gotHead := [...]any{got.Command, got.CookieMask, got.OutPort, got.OutGroup, got.Flags &^ ofp.FlagResetCounts}
		wantHead := [...]any{want.Command, want.CookieMask, want.OutPort, want.OutGroup, want.Flags &^ ofp.FlagResetCounts}
		if got.Canonical() != want.Canonical() || gotHead != wantHead {
			t.Errorf("text %s\nis to ovs-ofctl %s\n%v\n%v", lines[i], got, gotHead, wantHead)
		}
	}
}

// TestOwnTextIsOVSText compares our text of a flow with what ovs-ofctl prints,
// item by item: the order of the match fields is ours.
func TestOwnTextIsOVSText(t *testing.T) {
	var frames [][]byte
	for _, c := range flowCases() {
		frames = append(frames, encode(t, 1, &c.mod))
	}
	for i, text := range ovsText(t, frames) {
		own := flowCases()[i].mod.String()
		_, text, _ = strings.Cut(text, "ADD ")
		if got, want := items(own), items(text); !slices.Equal(got, want) {
			t.Errorf("we print\n%s\novs-ofctl\n%s\nitems\n%q\n%q", own, text, got, want)
		}
	}
}

// items are the parts of a flow, sorted; actions are one part and keep their
// order. Table 0 and the default priority are left out, as ovs-ofctl does.
func items(flow string) []string {
	match, actions, _ := strings.Cut(flow, "actions=")
	match = flowModWords.Replace(match)
	parts := strings.FieldsFunc(match, func(r rune) bool { return r == ',' || r == ' ' })
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "table=0" })
	slices.Sort(parts)
	return append(parts, "actions="+actions)
}

// flowModWords: ovs-ofctl uses other words for a flow_mod than for a flow.
var flowModWords = strings.NewReplacer("table:", "table=", "cookie:", "cookie=", "idle:", "idle_timeout=",
	"hard:", "hard_timeout=", "importance:", "importance=")

var xidText = regexp.MustCompile(`\(xid=0x[0-9a-f]+\)`)

func withoutXID(s string) string { return xidText.ReplaceAllString(s, "") }

// parseFlows lets ovs-ofctl read flows and returns what it makes of each.
func parseFlows(t *testing.T, flows []string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flows")
	if err := os.WriteFile(file, []byte(strings.Join(flows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(ofctl(t, "parse-flows", file)) {
		if strings.HasPrefix(line, "OFPT_FLOW_MOD") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if len(got) != len(flows) {
		t.Fatal(fmt.Errorf("ovs-ofctl read %d of %d flows:\n%s", len(got), len(flows), strings.Join(got, "\n")))
	}
	return got
}
