package windows_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/derive"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// busy is an answer of HNS that says nothing about what exists.
var busy = &windows.HNSError{Op: "test", Code: 0xaa, Text: "Element not found."}

func mustLink(t *testing.T, l *windows.Linker, req podnet.Request) (podnet.Link, ifstore.Interface) {
	t.Helper()
	link, err := l.Link(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return link, podnettest.RecordOf(req, link)
}

func TestLinkAsksForEveryValue(t *testing.T) {
	hns := hnstest.New()
	id := hns.AddNetwork(windows.Network{Name: "podnet", Type: windows.Transparent}) // no subnets: any address
	l := newLinker(t, hns, func(c *windows.Config) {
		c.Network = windows.Network{}
		c.DNS = podnet.DNS{Servers: []netip.Addr{netip.MustParseAddr("10.96.0.10")}}
		c.MTU = 1450
	})
	req := request(hns, 1)
	req.Addresses = append(req.Addresses, ifstore.Address{Prefix: netip.MustParsePrefix("fd00::5/64"), Gateway: netip.MustParseAddr("fd00::1")})
	req.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("10.9.0.7/16")}, {Dst: netip.MustParsePrefix("10.8.0.0/16"), GW: netip.MustParseAddr("10.1.2.3")}}
	link, iface := mustLink(t, l, req)

	e := hns.Endpoints()[0]
	if want := derive.Name("pod", req.Key); e.Name != want || link.Name != want || len(want) != 15 {
		t.Errorf("endpoint %q, link %q, want %q", e.Name, link.Name, want)
	}
	if e.MAC != link.MAC || e.MAC[0]&3 != 2 {
		t.Errorf("MAC address %v in HNS, %v in the link", e.MAC, link.MAC)
	}
	if link.MTU != 1450 {
		t.Errorf("MTU %d", link.MTU)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("10.1.2.11/24"), netip.MustParsePrefix("fd00::5/64")}; !slices.Equal(e.Addresses, want) {
		t.Errorf("addresses %v, want %v", e.Addresses, want)
	}
	want := []windows.EndpointRoute{
		{Dst: netip.MustParsePrefix("10.9.0.0/16"), GW: subnet.Gateway},
		{Dst: netip.MustParsePrefix("10.8.0.0/16"), GW: netip.MustParseAddr("10.1.2.3")},
		{Dst: netip.MustParsePrefix("::/0"), GW: netip.MustParseAddr("fd00::1")}, // the family without a route of its own
	}
	if !slices.Equal(e.Routes, want) {
		t.Errorf("routes %v, want %v", e.Routes, want)
	}
	if len(e.DNS.Servers) != 1 || e.DNS.Servers[0].String() != "10.96.0.10" {
		t.Errorf("resolver %+v", e.DNS)
	}
	ids := map[string]string{"hns-endpoint": e.ID.String(), "hns-namespace": req.NetNS, "hns-network": id.String()}
	for k, v := range ids {
		if link.Extra[k] != v {
			t.Errorf("Extra[%q] is %q, want %q", k, link.Extra[k], v)
		}
	}
	if err := l.Check(t.Context(), iface); err != nil {
		t.Error(err)
	}

	other := request(hns, 2)
	other.DNS = podnet.DNS{Servers: []netip.Addr{netip.MustParseAddr("10.0.0.53")}, Search: []string{"svc"}}
	mustLink(t, l, other)
	if e := hns.Endpoints()[1]; len(e.DNS.Servers) != 1 || e.DNS.Servers[0].String() != "10.0.0.53" || !slices.Equal(e.DNS.Search, []string{"svc"}) {
		t.Errorf("resolver %+v, the request's own was asked for", e.DNS)
	}
}

// HN-30: what ADD does needs no compartment, which is there only later: it
// reads lists, makes the endpoint and tells the namespace of it.
func TestLinkTouchesNothingThatNeedsTheContainer(t *testing.T) {
	hns := node()
	l := newLinker(t, hns)
	link, _ := mustLink(t, l, request(hns, 1))
	id := link.Extra["hns-endpoint"]
	want := []string{"list networks podnet", "list endpoints", "create endpoint " + link.Name, "attach " + id}
	if calls := hns.Calls(); !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

func TestLinkRefusesWhatCannotWork(t *testing.T) {
	for _, test := range []struct {
		name    string
		breakIt func(*podnet.Request)
		words   string
	}{
		{"no namespace", func(r *podnet.Request) { r.NetNS = "" }, "CNI_NETNS"},
		{"not a namespace", func(r *podnet.Request) { r.NetNS = "host" }, "neither the GUID"},
		{"a runtime that makes no namespace", func(r *podnet.Request) { r.NetNS = "none" }, "containerd"},
		{"a container of a sandbox", func(r *podnet.Request) { r.NetNS = "container:abc" }, "shares the interface of its sandbox"},
		{"no container id", func(r *podnet.Request) { r.ContainerID = "" }, "CNI_CONTAINERID"},
		{"group MAC address", func(r *podnet.Request) { r.MAC = ifstore.MAC{1, 2, 3, 4, 5, 6} }, "multicast"},
		{"address twice", func(r *podnet.Request) { r.Addresses = append(r.Addresses, r.Addresses[0]) }, "twice"},
		{"loopback address", func(r *podnet.Request) { r.Addresses[0].Prefix = netip.MustParsePrefix("127.0.0.1/8") }, "unicast"},
		{"own gateway", func(r *podnet.Request) { r.Addresses[0].Gateway = r.Addresses[0].Prefix.Addr() }, "own address"},
		{"gateway of the other family", func(r *podnet.Request) { r.Addresses[0].Gateway = netip.MustParseAddr("fd00::1") }, "other address family"},
		{"MTU too small", func(r *podnet.Request) { r.MTU = 300 }, "want 352"},
		{"MTU too small for IPv6", func(r *podnet.Request) {
			r.MTU, r.Addresses = 1279, []ifstore.Address{{Prefix: netip.MustParsePrefix("fd00::5/64")}}
		}, "want 1280"},
		{"route of a family without address", func(r *podnet.Request) {
			r.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("fd01::/64"), GW: netip.MustParseAddr("fd00::1")}}
		}, "no address of its family"},
		{"route without gateway", func(r *podnet.Request) {
			r.Addresses[0].Gateway, r.Routes = netip.Addr{}, []ifstore.Route{{Dst: netip.MustParsePrefix("10.0.0.0/8")}}
		}, "HNS makes none without"},
		{"route with MTU", func(r *podnet.Request) {
			r.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("10.0.0.0/8"), MTU: 1400}}
		}, "HNS cannot give"},
		{"two gateways for one route", func(r *podnet.Request) {
			r.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("10.0.0.0/8")}, {Dst: netip.MustParsePrefix("10.0.0.0/8"), GW: netip.MustParseAddr("10.1.2.3")}}
		}, "two gateways"},
	} {
		t.Run(test.name, func(t *testing.T) {
			hns := node()
			req := request(hns, 1)
			test.breakIt(&req)
			_, err := newLinker(t, hns).Link(t.Context(), req)
			if !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v; want a bad request that says %q", err, test.words)
			}
			if calls := hns.Calls(); len(calls) != 0 {
				t.Errorf("HNS was asked: %q", calls)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, test := range []struct {
		name  string
		cfg   windows.Config
		words string
	}{
		{"no HNS", windows.Config{}, "no HNS"},
		{"prefix too long", windows.Config{HNS: node(), HostPrefix: "abcdefgh"}, "8 characters"},
		{"prefix with a space", windows.Config{HNS: node(), HostPrefix: "a b"}, "letters, digits"},
		{"MTU", windows.Config{HNS: node(), MTU: 100}, "want 352"},
		{"negative limit", windows.Config{HNS: node(), CallTimeout: -1}, "negative"},
		{"negative calls", windows.Config{HNS: node(), MaxCalls: -1}, "1 or more"},
		{"network type", windows.Config{HNS: node(), Network: windows.Network{Type: "NAT"}}, "Transparent"},
	} {
		if _, err := windows.NewLinker(test.cfg); !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v; want a bad request that says %q", test.name, err, test.words)
		}
	}
}

// What HNS gave is the truth, not what it was asked for.
func TestLinkReadsBackWhatHNSGave(t *testing.T) {
	t.Run("a MAC address of its own", func(t *testing.T) {
		hns := node()
		hns.ChooseMACs()
		l := newLinker(t, hns)
		link, iface := mustLink(t, l, request(hns, 1))
		if e := hns.Endpoints()[0]; link.MAC != e.MAC {
			t.Errorf("MAC address %v, HNS has %v", link.MAC, e.MAC)
		}
		if err := l.Check(t.Context(), iface); err != nil {
			t.Error(err)
		}
	})
	t.Run("another MAC address than asked for", func(t *testing.T) {
		hns := node()
		hns.ChooseMACs()
		req := request(hns, 1)
		req.MAC = ifstore.MAC{2, 0, 0, 0, 0, 7}
		if _, err := newLinker(t, hns).Link(t.Context(), req); err == nil || !strings.Contains(err.Error(), "02:00:00:00:00:07") {
			t.Errorf("%v does not name the MAC address", err)
		}
		if left := names(hns); len(left) != 0 {
			t.Errorf("left %q", left)
		}
	})
	t.Run("another address", func(t *testing.T) {
		hns := &changing{HNS: node()}
		_, err := newLinker(t, hns).Link(t.Context(), request(hns.HNS, 1))
		if err == nil || !strings.Contains(err.Error(), "10.1.2.99/24") {
			t.Errorf("%v does not name the address", err)
		}
		if left := names(hns.HNS); len(left) != 0 {
			t.Errorf("left %q", left)
		}
	})
}

// HN-18, and every other step that fails: nothing is left, and what is deleted is
// what was made.
func TestFailedLinkLeavesNothing(t *testing.T) {
	for _, test := range []struct {
		name  string
		op    windows.Op
		fault hnstest.Fault
	}{
		{"attach fails", windows.OpAttach, hnstest.Fault{Err: busy}},
		{"attach fails although it was done", windows.OpAttach, hnstest.Fault{After: busy}},
		{"create fails", windows.OpCreateEndpoint, hnstest.Fault{Err: busy}},
		{"list fails", windows.OpList, hnstest.Fault{Err: busy}},
	} {
		t.Run(test.name, func(t *testing.T) {
			hns := node()
			l := newLinker(t, hns)
			req := request(hns, 1)
			// An endpoint that has its container's id for a name: not ours to touch.
			hns.AddEndpoint(windows.Endpoint{Name: req.ContainerID, Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.77/24")}})
			hns.Set(test.op, test.fault)
			if _, err := l.Link(t.Context(), req); !errors.Is(err, busy) {
				t.Errorf("%v, want %v", err, busy)
			}
			if left := names(hns); !slices.Equal(left, []string{req.ContainerID}) {
				t.Errorf("endpoints %q", left)
			}
			hns.Set(test.op, hnstest.Fault{})
			mustLink(t, l, req)
		})
	}
}

// HN-23: what cannot be looked up is not taken for missing.
func TestNothingIsMadeWhenTheListFails(t *testing.T) {
	for _, err := range []error{
		busy,
		&windows.HNSError{Op: "list endpoints", Code: 0x6ba, Text: "Element not found. (0x490)"},
		errors.New("Endpoint name not found"),
	} {
		hns := node()
		l := newLinker(t, hns)
		mustLink(t, l, request(hns, 1)) // the network is known
		hns.ForgetCalls()
		hns.Set(windows.OpList, hnstest.Fault{Err: err})
		if _, got := l.Link(t.Context(), request(hns, 2)); !errors.Is(got, err) {
			t.Errorf("%v, want %v", got, err)
		}
		if n := count(hns, windows.OpCreateEndpoint); n != 0 {
			t.Errorf("%v: %d creates followed", err, n)
		}
		if _, _, got := newLinker(t, hns).EnsureNetwork(t.Context()); !errors.Is(got, err) || len(hns.Networks()) != 1 {
			t.Errorf("%v; networks %v", got, hns.Networks())
		}
	}
}

// HN-3: many ADDs on a fresh agent.
func TestParallelLinksOnAFreshLinker(t *testing.T) {
	hns := node()
	l := newLinker(t, hns)
	var group sync.WaitGroup
	for n := range 50 {
		req := request(hns, n)
		group.Go(func() {
			link, err := l.Link(t.Context(), req)
			if err == nil {
				err = l.Check(t.Context(), podnettest.RecordOf(req, link))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	looks := 0
	for _, c := range hns.Calls() {
		if strings.HasPrefix(c, "list networks") {
			looks++
		}
	}
	if looks != 1 {
		t.Errorf("the network was looked up %d times", looks)
	}
}

func TestLayer2InterfaceHasNoAddress(t *testing.T) {
	hns := hnstest.New()
	hns.AddNetwork(windows.Network{Name: "podnet", Type: windows.Transparent})
	l := newLinker(t, hns, func(c *windows.Config) { c.Network = windows.Network{} })
	req := request(hns, 1)
	req.NoIPAM, req.IPAM, req.Addresses = true, "", nil
	_, iface := mustLink(t, l, req)
	if err := l.Check(t.Context(), iface); err != nil {
		t.Error(err)
	}
	if e := hns.Endpoints()[0]; len(e.Addresses)+len(e.Routes) != 0 {
		t.Errorf("%+v", e)
	}
}
