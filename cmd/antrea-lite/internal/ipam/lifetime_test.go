package ipam

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexflint/go-filemutex"
	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
)

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	m := open(t, Config{Dir: dir, Ranges: []Range{v4, v6}, BootID: "boot1"})
	first := ips(t, m, request("a"))
	m.Close()

	m = open(t, Config{Dir: dir, Ranges: []Range{v4, v6}, BootID: "boot1"})
	if diff := cmp.Diff(first, ips(t, m, request("a"))); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	if other := ips(t, m, request("b")); other[0] == first[0] || other[1] == first[1] {
		t.Errorf("b got %v of a", other)
	}
	m.Close()

	m = open(t, Config{Dir: dir, Ranges: []Range{v4, v6}, BootID: "boot2"})
	usage, err := m.Usage(t.Context())
	if err != nil || usage[0].Taken != 0 || usage[1].Taken != 0 {
		t.Errorf("after a reboot: %+v %v", usage, err)
	}
}

// TestRebootsDoNotFillTheRange is ten reboots without a DEL on a /29.
func TestRebootsDoNotFillTheRange(t *testing.T) {
	dir := t.TempDir()
	for boot := range 10 {
		m := open(t, Config{Dir: dir, Ranges: []Range{v4}, BootID: fmt.Sprint("boot", boot)})
		for i := range 5 {
			ips(t, m, request(fmt.Sprintf("b%d-c%d", boot, i)))
		}
		m.Close()
	}
}

// TestCrashLeftovers: files that a crash leaves half-written do not block their address for ever.
func TestCrashLeftovers(t *testing.T) {
	dir := t.TempDir()
	m := open(t, Config{Dir: dir, Ranges: []Range{v4}})
	m.Close()
	net := filepath.Join(dir, "net")
	for name, content := range map[string]string{"10.10.0.2": "", "10.10.0.3": "only-an-id", "10.10.0.4": "gone\r\neth0", "10.10.0.5": "\r\neth0", "README": "not a lease", "last_reserved_ip.0": "10.10.0.6"} {
		if err := os.WriteFile(filepath.Join(net, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m = open(t, Config{Dir: dir, Ranges: []Range{v4}})
	if usage, err := m.Usage(t.Context()); err != nil || usage[0].Taken != 1 {
		t.Errorf("usage %+v %v, want one taken", usage, err)
	}
	freed, err := m.Keep(t.Context(), []ifstore.Key{request("someone").Key})
	if err != nil || freed != 1 {
		t.Errorf("Keep freed %d, %v", freed, err)
	}
	for i := range 5 {
		ips(t, m, request(fmt.Sprint(i)))
	}
}

func TestKeepAndAdopt(t *testing.T) {
	dir := t.TempDir()
	m := open(t, Config{Dir: dir, Ranges: []Range{v4, v6}})
	var live []ifstore.Interface
	for _, id := range []string{"a", "b", "c"} {
		got, err := m.Allocate(t.Context(), request(id))
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, ifstore.Interface{Key: request(id).Key, IPAM: Name, Addresses: got.Addresses})
	}
	if freed, err := m.Keep(t.Context(), []ifstore.Key{live[0].Key, live[2].Key}); err != nil || freed != 2 {
		t.Errorf("Keep freed %d, %v, want b's two", freed, err)
	}
	m.Close()
	if err := os.RemoveAll(filepath.Join(dir, "net")); err != nil {
		t.Fatal(err)
	}
	m = open(t, Config{Dir: dir, Ranges: []Range{v4, v6}})
	stranger := ifstore.Interface{Key: request("x").Key, IPAM: "dhcp", Addresses: []ifstore.Address{{Prefix: netip.MustParsePrefix("10.10.0.6/29")}}}
	if err := m.Adopt(t.Context(), append(live[:2:2], stranger)); err != nil {
		t.Fatal(err)
	}
	if got := ips(t, m, request("new")); got[0] == live[0].Addresses[0].Prefix.String() || got[0] == live[1].Addresses[0].Prefix.String() {
		t.Errorf("a new Pod got %v, which a restored one has", got)
	}
	thief := live[0]
	thief.Key = request("thief").Key
	if err := m.Adopt(t.Context(), []ifstore.Interface{thief}); err == nil || !strings.Contains(err.Error(), "a/eth0") || !strings.Contains(err.Error(), "thief") {
		t.Errorf("two interfaces with one address: %v", err)
	}
}

// TestLockHeld: another process has the directory.
func TestLockHeld(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := filemutex.New(filepath.Join(dir, "net", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	conf := Config{Dir: dir, Network: "net", Ranges: []Range{v4}, LockTimeout: 50 * time.Millisecond}
	if _, err := New(t.Context(), conf); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "net", "lock")) {
		t.Errorf("error %v does not name the lock", err)
	}
	conf.LockTimeout = time.Minute
	time.AfterFunc(30*time.Millisecond, func() { lock.Unlock() })
	m, err := New(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

// TestAnyHistory compares random histories, with restarts among them, with a model.
func TestAnyHistory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	conf := Config{Dir: dir, Ranges: []Range{v4, v6}, BootID: "b"}
	m := open(t, conf)
	model := map[ifstore.Key][]string{} // what each interface has
	// Odd ids: each is a key of its own whatever it looks like.
	ids := []string{"a", "a.b", "a-b", "A", "aa", "10.10.0.2", "lock", "last_reserved_ip.0"}
	for range 2000 {
		r := request(ids[rnd.IntN(len(ids))])
		r.IfName = []string{"eth0", "net1"}[rnd.IntN(2)]
		switch op := rnd.IntN(10); {
		case op < 5:
			got, err := m.Allocate(t.Context(), r)
			have, known := model[r.Key]
			if full := len(model) == 5; (err != nil) != (full && !known) {
				t.Fatalf("%v with %d of 5 taken, known %v: %v", r.Key, len(model), known, err)
			}
			if err != nil {
				continue
			}
			now := []string{got.Addresses[0].Prefix.String(), got.Addresses[1].Prefix.String()}
			if known && !cmp.Equal(have, now) {
				t.Fatalf("%v had %v, got %v", r.Key, have, now)
			}
			for k, other := range model {
				if k != r.Key && (other[0] == now[0] || other[1] == now[1]) {
					t.Fatalf("%v got %v, which %v has", r.Key, now, k)
				}
			}
			model[r.Key] = now
		case op < 9:
			if err := m.Release(t.Context(), r.Key); err != nil {
				t.Fatal(err)
			}
			delete(model, r.Key)
		default:
			m.Close()
			m = open(t, conf)
		}
	}
}

// TestConcurrent: many at once get different addresses, and all go back.
func TestConcurrent(t *testing.T) {
	m := open(t, Config{Ranges: []Range{{netip.MustParsePrefix("10.10.0.0/24"), netip.MustParseAddr("10.10.0.1")}, v6}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken := map[string]string{}
	for i := range 100 {
		wg.Go(func() {
			id := fmt.Sprint("c", i)
			a, err := m.Allocate(context.Background(), request(id))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, x := range a.Addresses {
				if other, ok := taken[x.Prefix.String()]; ok {
					t.Errorf("%s and %s have %s", id, other, x.Prefix)
				}
				taken[x.Prefix.String()] = id
			}
			mu.Unlock()
		})
	}
	wg.Wait()
	for i := range 100 {
		wg.Go(func() {
			if err := m.Release(context.Background(), request(fmt.Sprint("c", i)).Key); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if usage, err := m.Usage(t.Context()); err != nil || usage[0].Taken+usage[1].Taken != 0 {
		t.Errorf("usage %+v %v", usage, err)
	}
}
