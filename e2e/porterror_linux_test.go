package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// Open vSwitch cannot open a device that is there, and says so: "File exists"
// (OF-17), "Invalid argument" (OF-4). On Windows such a port stays so until
// anything in the database changes. A Linux switch does not do that, so a proxy
// tells it of one that does: whatever the switch says, the agent hears of an
// error, until it has nudged the switch twice.
func TestPortInErrorIsNudged(t *testing.T) {
	const words = "could not add network device to ofproto (File exists)"
	n, proxy := startBehindProxy(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	n.freeze()
	p := n.begin("p")
	row, err := n.Switch.Vsctl("get", "interface", p.HostInterface(), "_uuid")
	if err != nil {
		t.Fatal(err)
	}
	fault := &brokenPort{row: row, words: words}
	proxy.SetRule(fault.judge)
	n.thaw()
	n.hasNumber(p)
	n.areToldNotReady([]*lab.Pod{p}, words)
	n.settled("the port is nudged", func() error {
		if nudges := fault.seen(); len(nudges) < 2 {
			return fmt.Errorf("nudged %d times", len(nudges))
		}
		return nil
	})
	n.stillWaiting(p)
	records, err := n.records()
	if err != nil || !strings.Contains(records[p.ContainerID].Waiting, words) {
		t.Errorf("`antrea-lite ports` says %q, %v; Open vSwitch says %q", records[p.ContainerID].Waiting, err, words)
	}
	// Not in a tight loop: the pause grows.
	if nudges := fault.seen(); len(nudges) > 1 && nudges[1].Sub(nudges[0]) < 500*time.Millisecond {
		t.Errorf("nudged at %v", nudges)
	}
	// From now on the agent hears the truth.
	proxy.SetRule(nil)
	proxy.BreakAll()
	n.becomeReady(p)
	n.reach(peer, p)
	n.wantEvents(p, eventNotReady, eventReady)
}

// brokenPort makes a port look as if Open vSwitch could not open its device.
type brokenPort struct {
	row, words string

	mu     sync.Mutex
	nudges []time.Time
}

func (b *brokenPort) seen() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Time{}, b.nudges...)
}

// judge is a vswitchtest.Rule.
func (b *brokenPort) judge(m *vswitchtest.Message) vswitchtest.Verdict {
	switch {
	case m.ToServer && m.Method == "transact" && bytes.Contains(m.Params, []byte("podnet-nudged")):
		b.mu.Lock()
		b.nudges = append(b.nudges, time.Now())
		b.mu.Unlock()
	case m.Method == "update2":
		var params []json.RawMessage
		var tables map[string]map[string]map[string]map[string]any
		if json.Unmarshal(m.Params, &params) != nil || len(params) != 2 || json.Unmarshal(params[1], &tables) != nil {
			break
		}
		change := tables["Interface"][b.row]["modify"]
		if change == nil {
			break
		}
		change["ofport"], change["error"] = -1, b.words
		raw, err := json.Marshal(tables)
		if err == nil {
			m.Params, err = json.Marshal([]json.RawMessage{params[0], raw})
		}
		if err != nil {
			return vswitchtest.Break
		}
	}
	return vswitchtest.Forward
}

// startBehindProxy starts an agent whose OVSDB connection is in the test's hands.
func startBehindProxy(t *testing.T, extra map[string]any) (*node, *vswitchtest.Proxy) {
	t.Helper()
	n := prepare(t, extra)
	proxy := vswitchtest.StartProxy(t, filepath.Join(n.Dir, "ovsdb.sock"), n.Switch.DBSock())
	t.Cleanup(func() {
		// The agent needs its database until the last Pod is gone.
		n.unplugAll()
		if err := n.StopAgent(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Configure(map[string]any{"ovsdb": proxy.Endpoint()}); err != nil {
		t.Fatal(err)
	}
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.setBaseline()
	return n, proxy
}
