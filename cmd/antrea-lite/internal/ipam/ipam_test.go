package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	v4 = Range{netip.MustParsePrefix("10.10.0.0/29"), netip.MustParseAddr("10.10.0.1")} // five Pods: .2 to .6
	v6 = Range{netip.MustParsePrefix("fd00:10::/64"), netip.MustParseAddr("fd00:10::1")}
)

func open(t *testing.T, conf Config) *Manager {
	t.Helper()
	if conf.Dir == "" {
		conf.Dir = t.TempDir()
	}
	conf.Network = "net"
	m, err := New(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func request(id string, want ...string) podnet.Request {
	r := podnet.Request{Key: ifstore.Key{ContainerID: id, IfName: "eth0"}}
	for _, w := range want {
		r.WantIPs = append(r.WantIPs, netip.MustParseAddr(w))
	}
	return r
}

// ips allocates and returns the addresses as text.
func ips(t *testing.T, m *Manager, r podnet.Request) []string {
	t.Helper()
	a, err := m.Allocate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range a.Addresses {
		out = append(out, x.Prefix.String())
	}
	return out
}

func TestAllocateGivesEachFamily(t *testing.T) {
	m := open(t, Config{Ranges: []Range{v4, v6}})
	got, err := m.Allocate(t.Context(), request("a"))
	if err != nil {
		t.Fatal(err)
	}
	want := podnet.Allocation{IPAM: Name,
		Addresses: []ifstore.Address{
			{Prefix: netip.MustParsePrefix("10.10.0.2/29"), Gateway: v4.Gateway}, {Prefix: netip.MustParsePrefix("fd00:10::2/64"), Gateway: v6.Gateway}},
		Routes: []ifstore.Route{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: v4.Gateway}, {Dst: netip.MustParsePrefix("::/0"), GW: v6.Gateway}}}
	compare := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Error(diff)
	}
	again, err := m.Allocate(t.Context(), request("a"))
	if diff := cmp.Diff(want, again, compare); err != nil || diff != "" {
		t.Errorf("repeated: %v %s", err, diff)
	}
	if err := m.Check(t.Context(), ifstore.Interface{Key: request("a").Key, Addresses: got.Addresses}); err != nil {
		t.Error(err)
	}
	if err := m.Check(t.Context(), ifstore.Interface{Key: request("b").Key, Addresses: got.Addresses}); err == nil || !strings.Contains(err.Error(), "a/eth0") {
		t.Errorf("check of another's addresses: %v", err)
	}
}

func TestRequestedAddresses(t *testing.T) {
	m := open(t, Config{Ranges: []Range{v4, v6}})
	if diff := cmp.Diff([]string{"10.10.0.5/29", "fd00:10::2/64"}, ips(t, m, request("a", "10.10.0.5"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"10.10.0.6/29", "fd00:10::ff/64"}, ips(t, m, request("b", "fd00:10::ff", "10.10.0.6"))); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		want  []string
		bad   bool // the request can never succeed
		words []string
	}{
		{[]string{"10.10.0.5"}, false, []string{"10.10.0.5", "taken by a/eth0"}},
		{[]string{"10.10.0.1"}, true, []string{"10.10.0.1", "gateway"}},
		{[]string{"10.10.0.0"}, true, []string{"10.10.0.0", "network"}},
		{[]string{"10.10.0.7"}, true, []string{"10.10.0.7", "broadcast"}},
		{[]string{"192.0.2.1"}, true, []string{"192.0.2.1", "10.10.0.0/29", "fd00:10::/64"}},
		{[]string{"10.10.0.3", "10.10.0.4"}, true, []string{"10.10.0.3", "10.10.0.4", "one"}},
		{[]string{"10.10.0.3", "fd00:10::ff"}, false, []string{"fd00:10::ff", "b/eth0"}},
	} {
		_, err := m.Allocate(t.Context(), request("c", c.want...))
		if !errors.Is(err, ErrNoAddress) || errors.Is(err, podnet.ErrBadRequest) != c.bad {
			t.Errorf("%v: %v", c.want, err)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v: %q does not say %q", c.want, err, w)
			}
		}
		if held := m.store.ips[request("c").Key]; len(held) > 0 {
			t.Errorf("%v: the refused request keeps %v", c.want, held)
		}
	}
	if _, err := m.Allocate(t.Context(), request("a", "10.10.0.3")); err == nil || !strings.Contains(err.Error(), "10.10.0.5") {
		t.Errorf("another address for an interface that has one: %v", err)
	}
}

func TestRangeUsedUp(t *testing.T) {
	m := open(t, Config{Ranges: []Range{v6, v4}})
	for i := range 5 {
		ips(t, m, request(fmt.Sprint("c", i)))
	}
	_, err := m.Allocate(t.Context(), request("late"))
	if !errors.Is(err, ErrNoAddress) || !strings.Contains(err.Error(), "all 5 addresses of range 10.10.0.0/29") {
		t.Fatalf("error %v", err)
	}
	// The IPv6 address that it got first is free again.
	usage, err := m.Usage(t.Context())
	if err != nil || usage[0].Taken != 5 || usage[1].Taken != 5 || !usage[1].Full || usage[0].Full {
		t.Errorf("usage %+v %v", usage, err)
	}
	if err := m.Release(t.Context(), request("c3").Key); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("10.10.0.5/29", ips(t, m, request("late"))[1]); diff != "" {
		t.Error(diff)
	}
}

// TestReleasedAddressIsNotReusedAtOnce: a crash-looping Pod walks through the range.
func TestReleasedAddressIsNotReusedAtOnce(t *testing.T) {
	m := open(t, Config{Ranges: []Range{v4}})
	seen := map[string]bool{}
	for i := range 5 {
		ip := ips(t, m, request(fmt.Sprint(i)))[0]
		if seen[ip] {
			t.Errorf("%s was given again before the range was used up", ip)
		}
		seen[ip] = true
		if err := m.Release(t.Context(), request(fmt.Sprint(i)).Key); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for _, r := range []Range{
		{netip.MustParsePrefix("10.0.0.0/31"), netip.MustParseAddr("10.0.0.1")},
		{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParseAddr("10.0.1.1")},
	} {
		if _, err := New(t.Context(), Config{Dir: t.TempDir(), Network: "net", Ranges: []Range{r}}); err == nil || !strings.Contains(err.Error(), r.Prefix.String()) {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// TestWaitEndsWithContext: a call behind another one gives up with its caller.
func TestWaitEndsWithContext(t *testing.T) {
	m := open(t, Config{Ranges: []Range{v4}})
	m.sem <- struct{}{}
	defer func() { <-m.sem }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Allocate(ctx, request("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkAllocate(b *testing.B) {
	m, err := New(b.Context(), Config{Dir: b.TempDir(), Network: "net", BootID: "b", Ranges: []Range{{netip.MustParsePrefix("10.10.0.0/22"), netip.MustParseAddr("10.10.0.1")}, v6}})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for i := range 500 {
		if _, err := m.Allocate(b.Context(), request(fmt.Sprint("old", i))); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := m.Allocate(b.Context(), request("new")); err != nil {
			b.Fatal(err)
		}
		if err := m.Release(b.Context(), request("new").Key); err != nil {
			b.Fatal(err)
		}
	}
}
