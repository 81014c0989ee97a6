package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
)

// TestAudit: flows that got lost after a reconnect, and strangers with our mark, do not stay.
func TestAudit(t *testing.T) {
	n := newNode(t)
	n.conf.SyncPeriod = config.Duration(4 * time.Second)
	n.startReady()
	a, _ := n.plug("a", "")
	b, _ := n.plug("b", "")
	if err := errors.Join(n.sw.KillVswitchd(), n.sw.StartVswitchd()); err != nil {
		t.Fatal(err)
	}
	n.until("the session is back", func() error { _, err := n.cni("STATUS", "", ""); return err })
	mgmt := "unix:" + n.sw.MgmtSock(n.conf.Bridge)
	flows := func() string {
		t.Helper()
		out, err := n.sw.Ofctl("--no-stats", "dump-flows", mgmt, "table=0")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := strings.Count(flows(), "in_port=")
	cookie := flows()[strings.Index(flows(), "cookie=")+len("cookie="):]
	cookie, _, _ = strings.Cut(cookie, ",")
	for _, args := range [][]string{{"del-flows", mgmt, "table=0,in_port=2"}, {"add-flow", mgmt, "cookie=" + cookie + ",table=0,priority=7,in_port=999,actions=drop"}} {
		if _, err := n.sw.Ofctl(args...); err != nil {
			t.Fatal(err)
		}
	}
	n.until("the flows are repaired", func() error {
		out := flows()
		if got := strings.Count(out, "in_port="); got != before || strings.Contains(out, "in_port=999") {
			return fmt.Errorf("%d flows by port, want %d:\n%s", got, before, out)
		}
		return nil
	})
	n.pings("a", a, b)
	n.until("the repair is counted", func() error {
		if _, body := n.page("/metrics"); !strings.Contains(body, `antrea_lite_flow_audits_total{outcome="repaired"} 1`) {
			return errors.New("no such metric")
		}
		return nil
	})
	n.unplug("a", "b")
}
