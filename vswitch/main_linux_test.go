package vswitch_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

func TestMain(m *testing.M) {
	if slices.ContainsFunc(os.Args, func(a string) bool {
		return strings.HasPrefix(a, "-test.fuzz") && !strings.HasPrefix(a, "-test.fuzzcachedir")
	}) {
		os.Exit(m.Run()) // go test -fuzz: its workers talk over inherited descriptors, and need no network
	}
	nettest.Main()
	goleak.VerifyTestMain(m)
}

const br = "br0"

// within is a context for one step that must not hang.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, fmt.Errorf("the test waited %v", d))
	t.Cleanup(cancel)
	return ctx
}

func soon(t testing.TB) context.Context { t.Helper(); return within(t, time.Minute) }

// start runs a client until the test ends.
func start(t testing.TB, cfg vswitch.Config) *vswitch.Client {
	t.Helper()
	if cfg.Bridge == "" {
		cfg.Bridge = br
	}
	if cfg.Datapath == "" {
		cfg.Datapath = "netdev"
	}
	c, err := vswitch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return c
}

// setUp starts a switch, a client and the bridge.
func setUp(t testing.TB) (*vswitchtest.Switch, *vswitch.Client) {
	t.Helper()
	sw := vswitchtest.Start(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	if _, err := c.EnsureBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	return sw, c
}

// veth makes a pair and returns the host end's name. Both go when the test ends.
func veth(t testing.TB, name string) string {
	t.Helper()
	la := netlink.NewLinkAttrs()
	la.Name = name
	link := &netlink.Veth{LinkAttrs: la, PeerName: "p" + name}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatalf("veth %s: %v", name, err)
	}
	t.Cleanup(func() { unlink(name) })
	return name
}

func unlink(name string) {
	if l, err := netlink.LinkByName(name); err == nil {
		netlink.LinkDel(l)
	}
}

func port(name string) podnet.Port {
	return podnet.Port{
		PortKey:     podnet.PortKey{Name: name},
		ExternalIDs: map[string]string{"podnet-owner": "test", "container-id": "c-" + name, "pod-namespace": "ns", "pod-name": name},
	}
}

func add(t testing.TB, c *vswitch.Client, name string) podnet.PortKey {
	t.Helper()
	key, err := c.AddPort(soon(t), port(name))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func number(t testing.TB, c *vswitch.Client, key podnet.PortKey) uint32 {
	t.Helper()
	n, err := c.WaitOFPort(soon(t), key)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func vsctl(t testing.TB, sw *vswitchtest.Switch, args ...string) string {
	t.Helper()
	out, err := sw.Vsctl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func do(t testing.TB, steps ...func() error) {
	t.Helper()
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

// until waits until look finds what the watch's changes lead to.
func until(t testing.TB, w *vswitch.Watch, what string, look func() bool) {
	t.Helper()
	ctx := soon(t)
	for !look() {
		if _, err := w.Next(ctx); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// tells repeats a call with little patience until its error says enough: how
// soon a client has found out what is wrong is not for a test to say.
func tells(t testing.TB, call func(context.Context) error, enough func(error) bool) {
	t.Helper()
	for end := soon(t); ; {
		ctx, cancel := context.WithTimeout(end, 200*time.Millisecond)
		err := call(ctx)
		cancel()
		if enough(err) {
			t.Log(err)
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-end.Done():
			t.Fatal(err)
		}
	}
}

func itoa(n uint32) string { return fmt.Sprint(n) }

// observer counts transactions by kind, and the changes they joined.
type observer struct {
	mu      sync.Mutex
	txs     map[string]int
	changes map[string]int
}

func (o *observer) Connected(bool) {}

func (o *observer) Transacted(kind string, changes int, _ time.Duration, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.txs == nil {
		o.txs, o.changes = map[string]int{}, map[string]int{}
	}
	o.txs[kind]++
	o.changes[kind] += changes
}

func (o *observer) count(kind string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.txs[kind]
}
