package vswitch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// each runs f for every index at once and waits.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// 300 Pods at once (facts 21, 24; SC-1, SC-7): few transactions, and nobody
// sees the view lag behind an answered transaction.
func TestThreeHundredAtOnce(t *testing.T) {
	sw := vswitchtest.Start(t)
	var o observer
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Observer: &o})
	if _, err := c.EnsureBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	const n = 300
	var names []string
	for i := range n / 2 {
		name := veth(t, fmt.Sprintf("many%d", i))
		names = append(names, name, "p"+name)
	}
	keys := make([]podnet.PortKey, n)
	numbers := make([]uint32, n)
	begin := time.Now()
	each(n, func(i int) {
		var err error
		if keys[i], err = c.AddPort(soon(t), port(names[i])); err != nil {
			t.Error(err)
			return
		}
		if _, err := c.OFPort(soon(t), keys[i]); errors.Is(err, podnet.ErrNoPort) {
			t.Error("the view lags behind an answered transaction:", err)
		}
		if numbers[i], err = c.WaitOFPort(soon(t), keys[i]); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d ports with their numbers in %v, %d transactions", n, time.Since(begin), o.count("add"))
	seen := map[uint32]string{}
	for i, num := range numbers {
		if other := seen[num]; other != "" {
			t.Errorf("%s and %s both have number %d", names[i], other, num)
		}
		seen[num] = names[i]
	}
	begin = time.Now()
	each(n, func(i int) {
		if err := c.SetExternalIDs(soon(t), keys[i], map[string]string{"podnet-state": "withdrawing", "pod-name": ""}); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d external_ids in %v, %d transactions", n, time.Since(begin), o.count("external_ids"))
	ports, err := c.Ports(soon(t))
	if err != nil || len(ports) != n+1 {
		t.Fatalf("%d ports, %v", len(ports), err)
	}
	for _, p := range ports[1:] {
		want := port(p.Name).ExternalIDs
		want["podnet-state"] = "withdrawing"
		delete(want, "pod-name")
		if p.Name == br {
			continue
		}
		if diff := cmp.Diff(want, p.ExternalIDs); diff != "" {
			t.Fatal(p.Name, diff)
		}
	}
	begin = time.Now()
	each(n, func(i int) {
		if err := c.DeletePort(soon(t), keys[i]); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d deleted in %v, %d transactions", n, time.Since(begin), o.count("delete"))
	if out := vsctl(t, sw, "--no-wait", "list-ports", br); out != "" {
		t.Errorf("left: %s", out)
	}
	for kind, limit := range map[string]int{"add": n / 10, "external_ids": n / 10, "delete": n / 10} {
		if got := o.count(kind); got > limit {
			t.Errorf("%d transactions of kind %s for %d ports", got, kind, n)
		}
	}
}

// Two agents' worth of callers fight for the same names: each name has exactly
// one winner, and the losers are told.
func TestTwoClientsSameNames(t *testing.T) {
	sw, a := setUp(t)
	b := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	const n = 60
	wins := make([][2]error, n)
	each(2*n, func(i int) {
		client := []*vswitch.Client{a, b}[i%2]
		_, wins[i/2][i%2] = client.AddPort(soon(t), port(fmt.Sprintf("race%d", i/2)))
	})
	for i, w := range wins {
		lost := errors.Join(w[0], w[1])
		if (w[0] == nil) == (w[1] == nil) || !errors.Is(lost, podnet.ErrPortExists) {
			t.Errorf("race%d: %v / %v", i, w[0], w[1])
		}
	}
	if ports, err := a.Ports(soon(t)); err != nil || len(ports) != n+1 {
		t.Errorf("%d ports, %v", len(ports), err)
	}
}

func TestSameNameTwiceAtOnce(t *testing.T) {
	_, c := setUp(t)
	errs := make([]error, 8)
	each(len(errs), func(i int) { _, errs[i] = c.AddPort(soon(t), port("same")) })
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, podnet.ErrPortExists) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d callers made the same port", won)
	}
}

// A caller that gives up while its transaction is under way leaves no row.
func TestCancelledCallerLeavesNoRow(t *testing.T) {
	sw, _ := setUp(t)
	p := vswitchtest.StartProxy(t, sw.Dir+"/proxy.sock", sw.DBSock())
	c := start(t, vswitch.Config{Endpoint: p.Endpoint()})
	w := c.WatchOFPorts()
	defer w.Close()
	add(t, c, "stays")

	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	p.SetRule(func(m *vswitchtest.Message) vswitchtest.Verdict {
		if m.IsAnswer() && m.Request == "transact" {
			cancel(gaveUp)
			return vswitchtest.Hold
		}
		return vswitchtest.Forward
	})
	if _, err := c.AddPort(ctx, port("unwanted")); !errors.Is(err, podnet.ErrOutcomeUnknown) || !errors.Is(err, gaveUp) {
		t.Errorf("AddPort: %v", err)
	}
	until(t, w, "the row that nobody waits for", func() bool {
		_, err := c.OFPort(soon(t), podnet.PortKey{Name: "unwanted"})
		return !errors.Is(err, podnet.ErrNoPort)
	})
	p.SetRule(nil)
	p.Release()
	until(t, w, "the row to go", func() bool {
		_, err := c.OFPort(soon(t), podnet.PortKey{Name: "unwanted"})
		return errors.Is(err, podnet.ErrNoPort)
	})
	// The name is free for the next caller, however soon.
	if _, err := c.AddPort(soon(t), port("unwanted")); err != nil {
		t.Error(err)
	}
	ports, err := c.Ports(soon(t))
	if err != nil || len(ports) != 3 {
		t.Errorf("%+v, %v", ports, err)
	}
}

func TestDeadContextSendsNothing(t *testing.T) {
	_, c := setUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.AddPort(ctx, port("x")); !errors.Is(err, context.Canceled) || errors.Is(err, podnet.ErrOutcomeUnknown) {
		t.Errorf("AddPort: %v", err)
	}
	if _, err := c.OFPort(soon(t), podnet.PortKey{Name: "x"}); !errors.Is(err, podnet.ErrNoPort) {
		t.Errorf("OFPort: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	_, c := setUp(t)
	for _, p := range []podnet.Port{
		port(""), port("sixteen-chars-xx"), port("a b"), port("a/b"), port("a\x00b"), port("\xff"),
		{PortKey: podnet.PortKey{Name: "x"}, ExternalIDs: map[string]string{"k": "nul\x00"}},
		{PortKey: podnet.PortKey{Name: "x"}, ExternalIDs: map[string]string{"": "v"}},
		{PortKey: podnet.PortKey{Name: "x"}, ExternalIDs: map[string]string{"k": "\xc3\x28"}},
	} {
		if _, err := c.AddPort(soon(t), p); !errors.Is(err, podnet.ErrBadRequest) {
			t.Errorf("%q %q: %v", p.Name, p.ExternalIDs, err)
		}
	}
	// Odd but possible text comes back as it went in.
	odd := port("odd")
	odd.ExternalIDs = map[string]string{`quote"\`: "new\nline", "ü": "名", "empty": "", "set": "set", "uuid": "uuid"}
	if _, err := c.AddPort(soon(t), odd); err != nil {
		t.Fatal(err)
	}
	ports, err := c.Ports(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(odd.ExternalIDs, ports[1].ExternalIDs); diff != "" {
		t.Error(diff)
	}
}

// DB-17: only changes are written, and the database does not grow without them.
func TestDatabaseFileGrowsOnlyByChanges(t *testing.T) {
	sw, c := setUp(t)
	var o observer
	quiet := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Observer: &o, ProbeInterval: 10 * time.Millisecond})
	key := add(t, c, "p0")
	size := func() int64 {
		st, err := os.Stat(sw.Dir + "/conf.db")
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	number := podnet.PortKey{Name: "p0"}
	c.WaitOFPort(soon(t), number) // -1: ovs-vswitchd has written all it has to say
	before := size()
	for range 20 {
		if err := quiet.SetExternalIDs(soon(t), key, port("p0").ExternalIDs); err != nil {
			t.Fatal(err)
		}
		if _, err := quiet.EnsureBridge(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	if o.count("external_ids")+o.count("bridge") != 0 {
		t.Error("writes that change nothing were sent")
	}
	if after := size(); after != before {
		t.Errorf("the database file grew from %d to %d bytes", before, after)
	}
}
