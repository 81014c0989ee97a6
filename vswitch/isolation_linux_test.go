package vswitch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// watched counts transactions.
type watched struct {
	mu  sync.Mutex
	txs int
}

func (w *watched) Connected(bool) {}
func (w *watched) Transacted(string, int, time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.txs++
}

// behindProxy runs a client behind a proxy, on a bridge that is there.
func behindProxy(t *testing.T, o Observer) (*vswitchtest.Switch, *vswitchtest.Proxy, *Client) {
	t.Helper()
	sw := vswitchtest.Start(t)
	if err := sw.AddBridge("br0", "netdev"); err != nil {
		t.Fatal(err)
	}
	p := vswitchtest.StartProxy(t, sw.Dir+"/proxy.sock", sw.DBSock())
	c, err := New(Config{Endpoint: p.Endpoint(), Bridge: "br0", Datapath: "netdev", Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return sw, p, c
}

// batchOf makes a joined batch deterministically: 16 Pods, of which some are named.
func batchOf(names ...string) []addition {
	var adds []addition
	for i := range 16 {
		a := addition{iface: uuid.NewString(), row: uuid.NewString()}
		a.port.Name = fmt.Sprintf("good%d", i)
		if n := i - 5; n >= 0 && n < len(names) {
			a.port.Name = names[n]
		}
		adds = append(adds, a)
	}
	return adds
}

func checkIsolated(t *testing.T, c *Client, adds []addition, isBad func(name string, err error) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	results := c.runAdds(ctx, adds)
	for i, r := range results {
		name := adds[i].port.Name
		if bad := isBad(name, r.Err); bad == strings.HasPrefix(name, "good") {
			t.Errorf("%s: %v", name, r.Err)
		} else if bad {
			t.Logf("%s: %v", name, r.Err)
		}
		if r.Err == nil && r.Value.Gen != adds[i].iface {
			t.Errorf("%s: key %+v", name, r.Value)
		}
	}
	ports, err := c.Ports(ctx)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, p := range ports {
		have[p.Name] = true
	}
	for _, a := range adds {
		if strings.HasPrefix(a.port.Name, "good") && !have[a.port.Name] {
			t.Errorf("%s is missing", a.port.Name)
		}
	}
}

// An operation that fails names its Pod by index; the others get by in one more
// transaction.
func TestOneBadOperationInAJoinedTransaction(t *testing.T) {
	var o watched
	_, p, c := behindProxy(t, &o)
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		if m.Method == "transact" {
			m.Params = bytes.ReplaceAll(m.Params, []byte(`"name":"bad0"`), []byte(`"name":["set",[]]`))
		}
		return vswitchtest.Forward
	})
	checkIsolated(t, c, batchOf("bad0"), func(_ string, err error) bool { return err != nil })
	if o.txs != 2 {
		t.Errorf("%d transactions", o.txs)
	}
}

// A name that somebody took without our knowing fails at the commit, which
// blames nobody by index (fact 28).
func TestUnseenDuplicatesInAJoinedTransaction(t *testing.T) {
	var o watched
	sw, p, c := behindProxy(t, &o)
	if _, err := c.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	// It would report the ports' errors, on rows that we do not know.
	if err := sw.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		if m.Method == "update2" && bytes.Contains(m.Params, []byte(`"dup`)) {
			return vswitchtest.Hold
		}
		return vswitchtest.Forward
	})
	if _, err := sw.Vsctl("--no-wait", "add-port", "br0", "dup0", "--", "add-port", "br0", "dup1"); err != nil {
		t.Fatal(err)
	}
	checkIsolated(t, c, batchOf("dup0", "dup1"), func(_ string, err error) bool {
		if err != nil && !errors.Is(err, podnet.ErrPortExists) {
			t.Error(err)
		}
		return err != nil
	})
	t.Logf("%d transactions", o.txs)
	if o.txs > 16 {
		t.Errorf("%d transactions for 16 Pods", o.txs)
	}
}

// A name that we know to be taken costs its neighbours nothing.
func TestSeenDuplicateInAJoinedTransaction(t *testing.T) {
	var o watched
	sw, _, c := behindProxy(t, &o)
	if _, err := sw.Vsctl("add-br", "br1", "--", "set", "bridge", "br1", "datapath_type=netdev", "--", "add-port", "br1", "dup0"); err != nil {
		t.Fatal(err)
	}
	checkIsolated(t, c, batchOf("dup0", "br1", "good0"), func(name string, err error) bool {
		// Names in other bridges, other bridges' names, and one twice in the batch.
		if name == "good0" {
			return false
		}
		return errors.Is(err, podnet.ErrPortExists)
	})
	if o.txs != 1 {
		t.Errorf("%d transactions", o.txs)
	}
}
