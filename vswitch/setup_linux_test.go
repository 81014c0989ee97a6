package vswitch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// DB-2, DB-8: a connection whose set-up fails at any stage is given up whole.
func TestSetUpFailsAtEveryStage(t *testing.T) {
	_, p, c := proxied(t, nil)
	refuse := func(m *vswitchtest.Message) {
		m.Result, m.Error = nil, json.RawMessage(`{"error":"not today","details":"come back"}`)
	}
	nonsense := func(m *vswitchtest.Message) { m.Result = json.RawMessage(`[["set"]]`) }
	for _, stage := range []string{"set_db_change_aware", "get_schema", "monitor_cond"} {
		for _, f := range []struct {
			what    string
			match   func(*vswitchtest.Message) bool
			verdict vswitchtest.Verdict
			change  func(*vswitchtest.Message)
		}{
			{"break", request(stage), vswitchtest.Break, nil},
			{"lost", answer(stage), vswitchtest.Break, nil},
			{"never", answer(stage), vswitchtest.Drop, nil},
			{"refused", answer(stage), vswitchtest.Forward, refuse},
			{"malformed", answer(stage), vswitchtest.Forward, nonsense},
		} {
			rule, hit := onceHit(f.match, f.verdict, f.change)
			p.SetRule(rule)
			before := c.Status().Reconnects
			p.BreakAll()
			ctx := soon(t)
			for c.Status().Reconnects == before && ctx.Err() == nil {
				if _, err := c.Ports(ctx); err != nil {
					t.Errorf("%s, %s: %v", stage, f.what, err)
				}
			}
			t.Logf("%s, %s: %s", stage, f.what, c.Status().LastError)
			if !hit.Load() {
				t.Errorf("%s, %s did not happen", stage, f.what)
			}
		}
	}
	// A server that does not know set_db_change_aware is as good.
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		if answer("set_db_change_aware")(m) {
			m.Result, m.Error = nil, json.RawMessage(`"unknown method"`)
		}
		return vswitchtest.Forward
	})
	p.BreakAll()
	if _, err := c.Ports(soon(t)); err != nil {
		t.Error(err)
	}
}

func TestRefusedMonitorLeaksNothing(t *testing.T) {
	sw := vswitchtest.Start(t)
	p := vswitchtest.StartProxy(t, sw.Dir+"/proxy.sock", sw.DBSock())
	const rejections = 200
	var n atomic.Int64
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		if answer("monitor_cond")(m) {
			if n.Add(1) <= rejections {
				m.Result, m.Error = nil, json.RawMessage(`{"error":"no monitors today"}`)
			}
		}
		return vswitchtest.Forward
	})
	cfg := fast(p.Endpoint())
	cfg.BackoffMax = time.Millisecond
	c := start(t, cfg)
	if _, err := c.Info(soon(t)); err != nil {
		t.Fatal(err)
	}
	if st := c.Status(); !strings.Contains(st.LastError, "no monitors today") {
		t.Errorf("status %+v", st)
	}
	if open := p.Open(); open > 4 { // ours and perhaps one that is just being closed
		t.Errorf("%d sockets are open after %d rejected monitors", open, rejections)
	}
}

// DB-6: an update overtakes the first dump.
func TestUpdateBeforeTheDump(t *testing.T) {
	sw, p, c := proxied(t, nil)
	overtook := make(chan struct{}, 1)
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		switch {
		case answer("monitor_cond")(m):
			return vswitchtest.Hold
		case m.Method == "update2" && bytes.Contains(m.Params, []byte("early0")):
			select {
			case overtook <- struct{}{}:
			default:
			}
		}
		return vswitchtest.Forward
	})
	p.BreakAll()
	do(t, func() error { return p.AwaitHeld(soon(t), 1) })
	vsctl(t, sw, "--no-wait", "add-port", br, "early0")
	<-overtook
	p.Release()
	if _, err := c.OFPort(soon(t), podnet.PortKey{Name: "early0"}); errors.Is(err, podnet.ErrNoPort) {
		t.Error(err)
	}
}
