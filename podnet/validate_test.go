package podnet_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func address(s string) ifstore.Address { return ifstore.Address{Prefix: netip.MustParsePrefix(s)} }

// Every bad request gets one clear error that names the value, before anything is made.
func TestBadRequests(t *testing.T) {
	static := func(r *podnet.Request, addrs ...ifstore.Address) { r.IPAM, r.Addresses = "static", addrs }
	for _, test := range []struct {
		change func(*podnet.Request)
		want   string // in the error
	}{
		{func(r *podnet.Request) { r.ContainerID = "" }, `container id ""`},
		{func(r *podnet.Request) { r.ContainerID = "../../etc" }, `container id "../../etc"`},
		{func(r *podnet.Request) { r.ContainerID = ".hidden" }, `container id ".hidden"`},
		{func(r *podnet.Request) { r.ContainerID = "c1\n" }, `container id "c1\n"`},
		{func(r *podnet.Request) { r.IfName = "" }, `interface name ""`},
		{func(r *podnet.Request) { r.IfName = "sixteencharacter" }, `interface name "sixteencharacter"`},
		{func(r *podnet.Request) { r.IfName = "a/b" }, `interface name "a/b"`},
		{func(r *podnet.Request) { r.IfName = "a b" }, `interface name "a b"`},
		{func(r *podnet.Request) { r.IfName = "a:0" }, `interface name "a:0"`},
		{func(r *podnet.Request) { r.IfName = ".." }, `interface name ".."`},
		{func(r *podnet.Request) { r.NetNS = "" }, `network namespace ""`},
		{func(r *podnet.Request) { r.NetNS = "/run/\x00" }, `network namespace`},
		{func(r *podnet.Request) { r.Pod.Namespace = "" }, `Pod "/pod-c1"`},
		{func(r *podnet.Request) { r.Pod.Name = "a b" }, `"a b"`},
		{func(r *podnet.Request) { r.MAC = ifstore.MAC{1} }, `MAC address "01:00:00:00:00:00"`},
		{func(r *podnet.Request) { r.VLAN = 4095 }, `VLAN "4095"`},
		{func(r *podnet.Request) { r.MTU = 67 }, `MTU "67"`},
		{func(r *podnet.Request) { r.MTU = 70000 }, `MTU "70000"`},
		{func(r *podnet.Request) { r.MTU = 1000; static(r, address("fd00::1/64")) }, `MTU "1000": is below 1280`},
		{func(r *podnet.Request) { r.NoIPAM, r.IPAM = true, "static" }, `IPAM "static"`},
		{func(r *podnet.Request) { r.Addresses = []ifstore.Address{address("10.0.0.1/24")} }, `IPAM ""`},
		{func(r *podnet.Request) { static(r, ifstore.Address{}) }, `address "invalid Prefix"`},
		{func(r *podnet.Request) { static(r, address("0.0.0.0/0")) }, `address "0.0.0.0"`},
		{func(r *podnet.Request) { static(r, address("127.0.0.1/8")) }, `address "127.0.0.1"`},
		{func(r *podnet.Request) { static(r, address("ff02::1/64")) }, `address "ff02::1"`},
		{func(r *podnet.Request) { static(r, address("::ffff:10.0.0.1/120")) }, `address "::ffff:10.0.0.1"`},
		{func(r *podnet.Request) { static(r, address("10.0.0.9/24"), address("10.0.0.9/16")) }, `address "10.0.0.9": is listed twice`},
		{func(r *podnet.Request) {
			a := address("10.0.0.9/24")
			a.Gateway = netip.MustParseAddr("fd00::1")
			static(r, a)
		}, `gateway "fd00::1"`},
		{func(r *podnet.Request) { static(r); r.Routes = []ifstore.Route{{}} }, `route "invalid Prefix"`},
		{func(r *podnet.Request) {
			static(r)
			r.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("10.0.0.0/8"), GW: netip.MustParseAddr("fd00::1")}}
		}, `route gateway "fd00::1"`},
		{func(r *podnet.Request) {
			static(r)
			r.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("10.0.0.0/8"), MTU: -1}}
		}, `route MTU "-1"`},
		{func(r *podnet.Request) { r.WantIPs = []netip.Addr{{}} }, `wanted address "invalid IP"`},
		{func(r *podnet.Request) {
			ip := netip.MustParseAddr("10.0.0.7")
			r.WantIPs = []netip.Addr{ip, ip}
		}, `wanted address "10.0.0.7": is listed twice`},
	} {
		w := podnettest.NewWorld()
		n, err := podnet.New(w.Config())
		if err != nil {
			t.Fatal(err)
		}
		req := podnettest.NewRequest("c1")
		test.change(&req)
		_, err = n.Add(t.Context(), req)
		if !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want ErrBadRequest with %q in it", err, test.want)
		}
		wantNothingLeft(t, w, n)
		if calls := append(w.Addresses.Calls(), w.Linker.Calls()...); len(calls) > 0 {
			t.Errorf("%s: parts were called: %q", test.want, calls)
		}
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	for _, part := range []string{"Linker", "Readiness", "Bridge", "Flows"} {
		cfg := podnettest.NewWorld().Config()
		switch part {
		case "Linker":
			cfg.Linker = nil
		case "Readiness":
			cfg.Readiness = nil
		case "Bridge":
			cfg.Bridge = nil
		case "Flows":
			cfg.Flows = nil
		}
		if _, err := podnet.New(cfg); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("New without %s: %v", part, err)
		}
	}
}

// A layer-2 interface has no address, is announced to nobody and leaves nothing (IP-16).
func TestNoIPAM(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	req := podnettest.NewRequest("c1")
	req.NoIPAM, req.VLAN = true, 10
	iface, err := n.Add(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(iface.Addresses) != 0 || iface.IPAM != "" || iface.VLAN != 10 {
		t.Errorf("%+v", iface)
	}
	wantReady(t, w, n, "c1")
	for _, call := range w.Linker.Calls() {
		if strings.HasPrefix(call, "Announce") {
			t.Error("an interface without addresses was announced")
		}
	}
	if err := n.Check(t.Context(), iface.Key); err != nil {
		t.Errorf("Check: %v", err)
	}
	mustDelete(t, n, "c1")
	wantNothingLeft(t, w, n)
}
