package windows_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/Microsoft/hcsshim/hcn"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// These tests run the real hcsshim against a service that answers for HNS.

// nodeWith is a Linker on a node whose network exists.
func nodeWith(t *testing.T, change ...func(*windows.Config)) *windows.Linker {
	t.Helper()
	l := newLinker(t, windows.NewHCN(), change...)
	if _, _, err := l.EnsureNetwork(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := hcn.NewNamespace(hcn.NamespaceTypeHost).Create()
	if err != nil {
		t.Fatal(err)
	}
	return ns.Id
}

func hcnRequest(t *testing.T, n int) podnet.Request {
	req := requestIn(newNamespace(t), n)
	req.DNS = podnet.DNS{Servers: []netip.Addr{netip.MustParseAddr("10.96.0.10")}, Domain: "cluster.local", Search: []string{"default.svc.cluster.local"}}
	return req
}

func endpointNames(s *fakehns.Server) []string {
	var names []string
	for _, e := range s.Endpoints() {
		names = append(names, e.Name())
	}
	return names
}

func TestHCNConforms(t *testing.T) {
	podnettest.TestLinker(t, func(t *testing.T) podnettest.LinkerUnderTest {
		s := fakehns.Attach(t)
		return podnettest.LinkerUnderTest{
			Linker:    nodeWith(t),
			Request:   hcnRequest,
			Leftovers: func(*testing.T) []string { return endpointNames(s) },
			Break: func(t *testing.T, iface ifstore.Interface) {
				if err := hcn.RemoveNamespaceEndpoint(iface.NetNS, iface.Extra["hns-endpoint"]); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestHCNKeepsEveryValue(t *testing.T) {
	for _, upper := range []bool{false, true} {
		s := fakehns.Attach(t)
		s.SetUpperIDs(upper)
		l := nodeWith(t)
		req := hcnRequest(t, 1)
		link, err := l.Link(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := windows.NewHCN().List(t.Context(), windows.Query{Kind: windows.Endpoints, Name: link.Name, States: true})
		if err != nil || len(objects.Endpoints) != 1 {
			t.Fatalf("%+v, %v", objects, err)
		}
		e := objects.Endpoints[0]
		if e.Name != link.Name || e.MAC != link.MAC || e.ID.String() != link.Extra["hns-endpoint"] || e.Namespace.String() != strings.ToLower(req.NetNS) ||
			!slices.Equal(e.Addresses, []netip.Prefix{netip.MustParsePrefix("10.1.2.11/24")}) ||
			!slices.Equal(e.Routes, []windows.EndpointRoute{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: subnet.Gateway}}) ||
			!slices.Equal(e.DNS.Servers, req.DNS.Servers) || e.DNS.Domain != req.DNS.Domain || !slices.Equal(e.DNS.Search, req.DNS.Search) {
			t.Errorf("upper case ids %v: %+v", upper, e)
		}
		if e.State == windows.StateUnknown {
			t.Error("the state is not known")
		}
		if err := l.Check(t.Context(), podnettest.RecordOf(req, link)); err != nil {
			t.Error(err)
		}
	}
}

func TestHCNFindsItsNetworkAgain(t *testing.T) {
	s := fakehns.Attach(t)
	l := newLinker(t, windows.NewHCN())
	n, created, err := l.EnsureNetwork(t.Context())
	if err != nil || !created || n.Adapter != network.Adapter || n.Type != windows.Transparent || !slices.Equal(n.Subnets, network.Subnets) {
		t.Fatalf("%+v, %v, %v", n, created, err)
	}
	again, created, err := newLinker(t, windows.NewHCN()).EnsureNetwork(t.Context())
	if err != nil || created || again.ID != n.ID {
		t.Errorf("%+v, %v, %v; want the network %s", again, created, err, n.ID)
	}
	if got := len(s.Networks()); got != 1 {
		t.Errorf("%d networks", got)
	}
}

// Codes alone decide, whatever words HNS uses with them.
func TestHCNErrorsByCodeAlone(t *testing.T) {
	id := windows.GUID{1}
	for _, test := range []struct {
		code uint32
		text string
		is   error
	}{
		{fakehns.ElementNotFound, "Element nicht gefunden. ", windows.ErrNotFound},
		{fakehns.EndpointNotFound, "x", windows.ErrNotFound},
		{fakehns.NetworkNotFound, "x", windows.ErrNotFound},
		{fakehns.Busy, "Element not found. ", nil},
		{fakehns.ServerUnavailable, "not found", nil},
		{fakehns.AlreadyAttached, "x", windows.ErrAttached},
		{fakehns.ObjectExists, "x", windows.ErrTaken},
		{fakehns.AddressInvalid, "x", windows.ErrTaken},
	} {
		s := fakehns.Attach(t)
		s.Intercept(fakehns.Refuse("HcnDeleteEndpoint", test.code, test.text))
		err := windows.NewHCN().DeleteEndpoint(t.Context(), id)
		for _, sentinel := range []error{windows.ErrNotFound, windows.ErrAttached, windows.ErrTaken} {
			if got, want := errors.Is(err, sentinel), test.is == sentinel; got != want {
				t.Errorf("0x%x %q: errors.Is(err, %v) is %v", test.code, test.text, sentinel, got)
			}
		}
		if err == nil || !strings.Contains(err.Error(), id.String()) {
			t.Errorf("0x%x: %v does not name the endpoint", test.code, err)
		}
	}
}

// hcsshim's lists fail when another deletes in between; ours do not.
func TestHCNListsWhileOthersDelete(t *testing.T) {
	fakehns.Attach(t)
	l := nodeWith(t)
	requests := make([]podnet.Request, 4)
	for n := range requests {
		requests[n] = hcnRequest(t, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	for _, req := range requests {
		churn.Go(func() {
			for ctx.Err() == nil {
				link, err := l.Link(t.Context(), req)
				if err == nil {
					err = l.Unlink(t.Context(), podnettest.RecordOf(req, link))
				}
				if err != nil {
					t.Errorf("%v: %v", req.Key, err)
					return
				}
			}
		})
	}
	for range 15 {
		if _, err := windows.NewHCN().List(t.Context(), windows.Query{Kind: windows.Endpoints, States: true}); err != nil {
			t.Error(err)
		}
	}
	cancel()
	churn.Wait()
}

// A delete that hangs holds nobody else, and whoever comes for the same
// endpoint gets its outcome. The limits are tested without a clock elsewhere.
func TestHCNHungDelete(t *testing.T) {
	s := fakehns.Attach(t)
	l := nodeWith(t)
	req := hcnRequest(t, 1)
	link, err := l.Link(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	hung, release := context.WithCancel(context.Background())
	defer release()
	entered := make(chan struct{}, 2)
	s.Intercept(fakehns.First(func(_ context.Context, c fakehns.Call) *fakehns.Reply {
		if c.Op == "HcnDeleteEndpoint" {
			entered <- struct{}{}
		}
		return nil
	}, fakehns.Hang(hung, "HcnDeleteEndpoint")))
	iface := podnettest.RecordOf(req, link)
	var deletes sync.WaitGroup
	unlink := func() {
		if err := l.Unlink(t.Context(), iface); err != nil {
			t.Error(err)
		}
	}
	deletes.Go(unlink)
	<-entered
	deletes.Go(unlink)
	if _, err := l.Link(t.Context(), hcnRequest(t, 2)); err != nil {
		t.Error(err)
	}
	release()
	deletes.Wait()
	if names := endpointNames(s); slices.Contains(names, link.Name) || len(names) != 1 {
		t.Errorf("endpoints %q", names)
	}
}

func TestHCNServiceStopped(t *testing.T) {
	s := fakehns.Attach(t)
	l := nodeWith(t)
	req := hcnRequest(t, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Link(t.Context(), req)
	if err == nil || !strings.Contains(err.Error(), "Host Network Service does not run") {
		t.Errorf("%v does not say that HNS is stopped", err)
	}
}

func TestHCNForgetsAll(t *testing.T) {
	s := fakehns.Attach(t)
	l := nodeWith(t)
	req := hcnRequest(t, 1)
	link, err := l.Link(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	iface := podnettest.RecordOf(req, link)
	s.Restart()
	if err := l.Check(t.Context(), iface); !errors.Is(err, windows.ErrVanished) {
		t.Errorf("Check: %v, want %v", err, windows.ErrVanished)
	}
	if err := l.Unlink(t.Context(), iface); err != nil {
		t.Errorf("Unlink: %v", err)
	}
	if _, err := l.Link(t.Context(), hcnRequest(t, 2)); !errors.Is(err, podnet.ErrTryAgain) || !errors.Is(err, windows.ErrNoNetwork) {
		t.Errorf("Link: %v, want %v", err, windows.ErrNoNetwork)
	}
	if _, created, err := l.EnsureNetwork(t.Context()); err != nil || !created {
		t.Fatal(created, err)
	}
	if _, err := l.Link(t.Context(), hcnRequest(t, 3)); err != nil {
		t.Errorf("Link after EnsureNetwork: %v", err)
	}
}

func TestHCNShowsTheState(t *testing.T) {
	s := fakehns.Attach(t)
	l := nodeWith(t)
	req := hcnRequest(t, 1)
	link, err := l.Link(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetState(link.Extra["hns-endpoint"], fakehns.StateSharing); err != nil {
		t.Fatal(err)
	}
	if e, err := l.Endpoints(t.Context()); err != nil || len(e) != 1 || e[0].Name != link.Name || e[0].State != 3 {
		t.Errorf("%+v, %v; want state 3", e, err)
	}
}
