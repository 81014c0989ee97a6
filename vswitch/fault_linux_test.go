package vswitch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// proxied starts a switch with a bridge, and a client that reaches it through a proxy.
func proxied(t *testing.T, o vswitch.Observer) (*vswitchtest.Switch, *vswitchtest.Proxy, *vswitch.Client) {
	t.Helper()
	sw := vswitchtest.Start(t)
	if err := sw.AddBridge(br, "netdev"); err != nil {
		t.Fatal(err)
	}
	p := vswitchtest.StartProxy(t, sw.Dir+"/proxy.sock", sw.DBSock())
	cfg := fast(p.Endpoint())
	cfg.AnswerTimeout, cfg.Observer = 500*time.Millisecond, o
	c := start(t, cfg)
	if _, err := c.Ports(soon(t)); err != nil {
		t.Fatal(err)
	}
	return sw, p, c
}

// once judges the first message that matches and forwards the rest.
func once(match func(*vswitchtest.Message) bool, verdict vswitchtest.Verdict, change func(*vswitchtest.Message)) vswitchtest.Rule {
	rule, _ := onceHit(match, verdict, change)
	return rule
}

// onceHit also tells when that message has come.
func onceHit(match func(*vswitchtest.Message) bool, verdict vswitchtest.Verdict, change func(*vswitchtest.Message)) (vswitchtest.Rule, *atomic.Bool) {
	var hit atomic.Bool
	return func(m *vswitchtest.Message) vswitchtest.Verdict {
		if !match(m) || hit.Swap(true) {
			return vswitchtest.Forward
		}
		if change != nil {
			change(m)
		}
		return verdict
	}, &hit
}

func request(method string) func(*vswitchtest.Message) bool {
	return func(m *vswitchtest.Message) bool { return m.ToServer && m.Method == method }
}

func answer(method string) func(*vswitchtest.Message) bool {
	return func(m *vswitchtest.Message) bool { return m.IsAnswer() && m.Request == method }
}

// DB-1, DB-3, DB-13: whatever happens to a transaction on its way, every change
// ends as one row, or none, and its caller knows.
func TestConnectionBreaksInATransaction(t *testing.T) {
	for name, rule := range map[string]func() vswitchtest.Rule{
		"request lost":             func() vswitchtest.Rule { return once(request("transact"), vswitchtest.Break, nil) },
		"closed after the request": func() vswitchtest.Rule { return once(request("transact"), vswitchtest.BreakAfter, nil) },
		"half closed":              func() vswitchtest.Rule { return once(request("transact"), vswitchtest.HalfClose, nil) },
		"answer lost":              func() vswitchtest.Rule { return once(answer("transact"), vswitchtest.Break, nil) },
		"answer half closed":       func() vswitchtest.Rule { return once(answer("transact"), vswitchtest.HalfClose, nil) },
		"no answer, server alive":  func() vswitchtest.Rule { return once(answer("transact"), vswitchtest.Drop, nil) },
		"answer truncated": func() vswitchtest.Rule {
			return once(answer("transact"), vswitchtest.Forward, func(m *vswitchtest.Message) { m.Result = json.RawMessage(`[]`) })
		},
		"answer malformed": func() vswitchtest.Rule {
			return once(answer("transact"), vswitchtest.Forward, func(m *vswitchtest.Message) { m.Result = json.RawMessage(`{"a":1}`) })
		},
		"answer without id": func() vswitchtest.Rule {
			return once(answer("transact"), vswitchtest.Forward, func(m *vswitchtest.Message) { m.ID = json.RawMessage(`null`) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			sw, p, c := proxied(t, nil)
			keys := make([]podnet.PortKey, 10)
			p.SetRule(rule())
			each(len(keys), func(i int) { keys[i] = add(t, c, fmt.Sprintf("f%d", i)) })
			for _, k := range keys {
				if out := vsctl(t, sw, "get", "interface", k.Name, "_uuid"); out != k.Gen {
					t.Errorf("%s: row %s, key %s", k.Name, out, k.Gen)
				}
			}
			p.SetRule(rule())
			if err := c.SetExternalIDs(soon(t), keys[0], map[string]string{"podnet-state": "ready", "pod-name": "new"}); err != nil {
				t.Error(err)
			}
			if out := vsctl(t, sw, "get", "port", "f0", "external_ids:podnet-state", "external_ids:pod-name"); out != "ready\nnew" {
				t.Errorf("external_ids %q", out)
			}
			p.SetRule(rule())
			each(len(keys), func(i int) {
				if err := c.DeletePort(soon(t), keys[i]); err != nil {
					t.Error(err)
				}
			})
			if out := vsctl(t, sw, "--no-wait", "list-ports", br); out != "" {
				t.Errorf("left: %s", out)
			}
			p.SetRule(rule())
			vsctl(t, sw, "del-br", br)
			if info, err := c.EnsureBridge(soon(t)); err != nil || info.UUID != vsctl(t, sw, "get", "bridge", br, "_uuid") {
				t.Errorf("EnsureBridge: %+v, %v", info, err)
			}
		})
	}
}

// DB-5: traffic vanishes and no connection is closed.
func TestBlackHole(t *testing.T) {
	sw, p, _ := proxied(t, nil)
	cfg := fast(p.Endpoint()) // with an AnswerTimeout that does not help
	cfg.ProbeInterval = 500 * time.Millisecond
	c := start(t, cfg)
	key := add(t, c, veth(t, "bh1"))
	number(t, c, key)
	for _, busy := range []bool{false, true} {
		old := p.Conns()
		p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
			if m.Conn <= old {
				return vswitchtest.Drop
			}
			return vswitchtest.Forward
		})
		begin := time.Now()
		w := c.WatchOFPorts()
		name := "bh-idle"
		if busy { // with a call in flight
			name = "bh-busy"
			add(t, c, name)
		} else {
			vsctl(t, sw, "--no-wait", "add-port", br, name)
		}
		until(t, w, "news over a new connection", func() bool {
			_, err := c.OFPort(soon(t), podnet.PortKey{Name: name})
			return !errors.Is(err, podnet.ErrNoPort)
		})
		w.Close()
		t.Logf("busy=%v: %v; %s", busy, time.Since(begin), c.Status().LastError)
		if !strings.Contains(c.Status().LastError, "nothing heard") {
			t.Errorf("status: %+v", c.Status())
		}
	}
}

// OF-15: no error text, and a number that is held back.
func TestErrorColumnIsMissing(t *testing.T) {
	_, p, c := proxied(t, nil)
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		if m.Method == "update2" {
			m.Params = bytes.ReplaceAll(m.Params, []byte(`"error":`), []byte(`"gone":`))
		}
		return vswitchtest.Forward
	})
	key := add(t, c, "silent0")
	_, err := c.WaitOFPort(soon(t), key)
	var pe *podnet.PortError
	if !errors.As(err, &pe) || pe.Text != "" {
		t.Errorf("WaitOFPort: %v", err)
	}
	t.Log(err)
}

func TestNumberIsHeldBack(t *testing.T) {
	_, p, c := proxied(t, nil)
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		if m.Method == "update2" && bytes.Contains(m.Params, []byte(`"ofport":`)) && !bytes.Contains(m.Params, []byte(`"insert"`)) {
			return vswitchtest.Hold
		}
		return vswitchtest.Forward
	})
	key := add(t, c, veth(t, "hb1"))
	do(t, func() error { return p.AwaitHeld(soon(t), 1) })
	if _, err := c.OFPort(soon(t), key); !errors.Is(err, podnet.ErrNoNumber) {
		t.Errorf("OFPort: %v", err)
	}
	p.SetRule(nil)
	p.Release()
	number(t, c, key)
}

// Updates that make no sense end the connection, and the next dump is right.
func TestNonsenseFromTheServer(t *testing.T) {
	sw, p, c := proxied(t, nil)
	key := add(t, c, veth(t, "ns1"))
	n := number(t, c, key)
	for _, params := range []string{
		`["podnet",{"Interface":{"12345678-0000-0000-0000-000000000000":{"modify":{"ofport":7}}}}]`,
		`["podnet",{"Port":{"` + key.Gen + `":{"insert":{"name":5}}}}]`,
		`["podnet",{"Interface":{"` + key.Gen + `":{"modify":{"ofport":["set"]}}}}]`,
		`["podnet",{"Interface":{"` + key.Gen + `":{"modify":{"ofport":[]}}}}]`,
		`["podnet",{"Interface":{"` + key.Gen + `":null}}]`,
		`["podnet",5]`, `[]`, `{}`,
	} {
		before := c.Status().Reconnects
		p.SetRule(once(func(m *vswitchtest.Message) bool { return m.Method == "update2" }, vswitchtest.Forward, func(m *vswitchtest.Message) { m.Params = json.RawMessage(params) }))
		w := c.WatchOFPorts()
		name := fmt.Sprintf("ns-%d", before)
		vsctl(t, sw, "--no-wait", "add-port", br, name)
		until(t, w, "the port", func() bool {
			_, err := c.OFPort(soon(t), podnet.PortKey{Name: name})
			return !errors.Is(err, podnet.ErrNoPort)
		})
		w.Close()
		if got := number(t, c, key); got != n {
			t.Errorf("after %s: number %d became %d", params, n, got)
		}
		if c.Status().Reconnects == before {
			t.Errorf("after %s: the connection was kept", params)
		}
		t.Log(c.Status().LastError)
	}
}

// A refusal that names nobody, for every transaction: each caller gets it.
func TestServerRefusesEverything(t *testing.T) {
	_, p, c := proxied(t, nil)
	for refusal, change := range map[string]func(params []json.RawMessage) []json.RawMessage{
		"unknown database": func(p []json.RawMessage) []json.RawMessage { p[0] = json.RawMessage(`"nope"`); return p },
		"aborted":          func(p []json.RawMessage) []json.RawMessage { return append(p, json.RawMessage(`{"op":"abort"}`)) },
	} {
		p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
			if request("transact")(m) {
				var params []json.RawMessage
				json.Unmarshal(m.Params, &params)
				m.Params, _ = json.Marshal(change(params))
			}
			return vswitchtest.Forward
		})
		each(5, func(i int) {
			if _, err := c.AddPort(soon(t), port(fmt.Sprintf("r%d", i))); err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("AddPort, want %s: %v", refusal, err)
			}
		})
	}
	p.SetRule(nil)
	if ports, err := c.Ports(soon(t)); err != nil || len(ports) != 1 {
		t.Errorf("%+v, %v", ports, err)
	}
}
