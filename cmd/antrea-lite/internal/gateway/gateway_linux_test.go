package gateway

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	goleak.VerifyTestMain(m)
}

// device makes an interface that stands for what Open vSwitch makes.
func device(t *testing.T, name string) netlink.Link {
	t.Helper()
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(link) })
	return link
}

func setting(t *testing.T, path string) string {
	t.Helper()
	v, err := Setting{Path: path}.Read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func TestApply(t *testing.T) {
	link := device(t, "gw0")
	// A Pod CIDR of an earlier life.
	for _, old := range []string{"10.99.0.1/24", "fd00:99::1/64", "10.10.0.1/16"} {
		a, err := netlink.ParseAddr(old)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			t.Fatal(err)
		}
	}
	conf := Config{Name: "gw0", MTU: 1400, Addresses: prefixes("10.10.0.1/24", "fd00:10::1/64")}
	state, changed, err := Apply(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("changed %q", changed)
	if !state.Up || state.MTU != 1400 || state.MAC.IsZero() {
		t.Errorf("state %+v", state)
	}
	check := func(when string) {
		t.Helper()
		now, err := Look("gw0")
		if err != nil {
			t.Fatal(err)
		}
		now.Addresses = slices.DeleteFunc(now.Addresses, func(p netip.Prefix) bool { return p.Addr().IsLinkLocalUnicast() })
		slices.SortFunc(now.Addresses, netip.Prefix.Compare)
		if !slices.Equal(now.Addresses, conf.Addresses) || !now.Up || now.MTU != 1400 {
			t.Errorf("%s: %+v", when, now)
		}
		for _, s := range Settings("gw0", true, true) {
			if v := setting(t, s.Path); v != s.Value {
				t.Errorf("%s: %s is %s, want %s", when, s.Path, v, s.Value)
			}
		}
	}
	check("first")
	if _, changed, err := Apply(conf); err != nil || len(changed) != 0 {
		t.Errorf("applied again: %q %v", changed, err)
	}
	// It goes down for a moment, and nobody has looked yet: all addresses are still there.
	if err := errors.Join(netlink.LinkSetDown(link), netlink.LinkSetUp(link)); err != nil {
		t.Fatal(err)
	}
	check("after it was down for a moment")
	// Somebody meddles.
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/gw0/rp_filter", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	if _, changed, err = Apply(conf); err != nil || len(changed) < 2 {
		t.Errorf("after meddling: %q %v", changed, err)
	}
	check("after meddling")
}

func TestLinkLocalStays(t *testing.T) {
	link := device(t, "gw0")
	a, err := netlink.ParseAddr("fe80::1234/64")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(link, a); err != nil {
		t.Fatal(err)
	}
	state, _, err := Apply(Config{Name: "gw0", MTU: 1500, Addresses: prefixes("fd00:10::1/64")})
	if err != nil || !slices.Contains(state.Addresses, netip.MustParsePrefix("fe80::1234/64")) {
		t.Errorf("%+v %v", state, err)
	}
}

// TestRouterAdvertisements: the node's own way out survives forwarding.
func TestRouterAdvertisements(t *testing.T) {
	device(t, "gw0")
	device(t, "uplink")
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/uplink/accept_ra", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Apply(Config{Name: "gw0", MTU: 1500, Addresses: prefixes("fd00:10::1/64")}); err != nil {
		t.Fatal(err)
	}
	if v := setting(t, "net/ipv6/conf/uplink/accept_ra"); v != "2" {
		t.Errorf("accept_ra of the uplink is %s, want 2", v)
	}
	if v := setting(t, "net/ipv6/conf/gw0/accept_ra"); v != "0" {
		t.Errorf("accept_ra of the gateway is %s, want 0", v)
	}
}

func TestNoInterface(t *testing.T) {
	_, _, err := Apply(Config{Name: "nope", MTU: 1500})
	if err == nil || !strings.Contains(err.Error(), "nope") || !strings.Contains(err.Error(), "ovs-vsctl") {
		t.Errorf("error %v", err)
	}
}

// TestWatch: a change of the gateway is told, and the watch ends with its context.
func TestWatch(t *testing.T) {
	link := device(t, "gw0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		done <- Watch(ctx, "gw0", func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	// The subscription begins some time after the call: change until it is told.
	deadline := time.After(10 * time.Second)
	for up := true; ; up = !up {
		set := netlink.LinkSetDown
		if up {
			set = netlink.LinkSetUp
		}
		if err := set(link); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			return
		case <-deadline:
			t.Fatal("no change was told")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
