package windows_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/derive"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// HN-29: something is there before the ADD.
func TestEndpointsInTheWay(t *testing.T) {
	const adopted, removed, refused, ignored = "adopted", "removed", "refused", "ignored"
	hns := hnstest.New()
	ours := hns.AddNetwork(network)
	other := hns.AddNetwork(windows.Network{Name: "nat", Type: "NAT"})
	req := request(hns, 1)
	namespace, err := windows.ParseGUID(req.NetNS)
	if err != nil {
		t.Fatal(err)
	}
	alive := hns.AddNamespace()
	dead := hns.AddNamespace()
	hns.RemoveNamespace(dead)

	name := derive.Name("pod", req.Key)
	another := derive.Name("pod", ifstore.Key{ContainerID: "another", IfName: "eth0"})
	address := []netip.Prefix{req.Addresses[0].Prefix}
	routes := []windows.EndpointRoute{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: subnet.Gateway}}
	// same is what an earlier attempt of the same ADD made.
	same := windows.Endpoint{Network: ours, Name: name, MAC: derive.MACOfName(name), Addresses: address, Routes: routes}
	// orphan is what an ADD of a container that is long gone made.
	orphan := windows.Endpoint{Network: ours, Name: another, MAC: derive.MACOfName(another), Addresses: address, Routes: routes}
	with := func(e windows.Endpoint, fn func(*windows.Endpoint)) windows.Endpoint { fn(&e); return e }

	for _, test := range []struct {
		name  string
		there windows.Endpoint
		want  string
	}{
		{"our own, as it should be", same, adopted},
		{"our own, attached already", with(same, func(e *windows.Endpoint) { e.Namespace = namespace }), adopted},
		{"our own, with another address", with(same, func(e *windows.Endpoint) { e.Addresses = []netip.Prefix{netip.MustParsePrefix("10.1.2.200/24")} }), removed},
		{"our own, with another prefix length", with(same, func(e *windows.Endpoint) { e.Addresses = []netip.Prefix{netip.MustParsePrefix("10.1.2.11/16")} }), removed},
		{"our own, without its routes", with(same, func(e *windows.Endpoint) { e.Routes = nil }), removed},
		{"our own, in a namespace that is gone", with(same, func(e *windows.Endpoint) { e.Namespace = dead }), removed},
		{"our name, in another living namespace", with(same, func(e *windows.Endpoint) { e.Namespace = alive }), refused},
		{"our name, on another network", with(same, func(e *windows.Endpoint) { e.Network = other }), refused},
		{"orphan with our address", orphan, removed},
		{"orphan with our address, in a namespace that is gone", with(orphan, func(e *windows.Endpoint) { e.Namespace = dead }), removed},
		{"orphan's, but in a living namespace", with(orphan, func(e *windows.Endpoint) { e.Namespace = alive }), refused},
		{"stranger with our address", with(orphan, func(e *windows.Endpoint) { e.Name = "docker0" }), refused},
		{"stranger with a name of our form", with(orphan, func(e *windows.Endpoint) { e.MAC = ifstore.MAC{0, 0x15, 0x5d, 1, 2, 3} }), refused},
		{"stranger with our MAC address", windows.Endpoint{Network: ours, Name: "x", MAC: derive.MACOfName(name)}, refused},
		{"our address on another network", with(orphan, func(e *windows.Endpoint) { e.Name, e.Network = "docker0", other }), ignored},
		{"stranger with other values", windows.Endpoint{Network: ours, Name: "x", Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.201/24")}}, ignored},
	} {
		t.Run(test.name, func(t *testing.T) {
			hns.RemoveEndpoints(name)
			id := hns.AddEndpoint(test.there)
			defer hns.RemoveEndpoints(test.there.Name)
			l := newLinker(t, hns) // an agent that has just started
			link, err := l.Link(t.Context(), req)
			there := slices.ContainsFunc(hns.Endpoints(), func(e windows.Endpoint) bool { return e.ID == id })
			if test.want == refused {
				if !errors.Is(err, podnet.ErrPortExists) || !strings.Contains(err.Error(), id.String()) || !strings.Contains(err.Error(), test.there.Name) {
					t.Errorf("%v; want %v with the endpoint's name and id %s", err, podnet.ErrPortExists, id)
				}
				if !there || len(hns.Endpoints()) != 1 {
					t.Errorf("endpoints %v", hns.Endpoints())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := link.Extra["hns-endpoint"] == id.String(); got != (test.want == adopted) {
				t.Errorf("endpoint %s, there was %s; want it %s", link.Extra["hns-endpoint"], id, test.want)
			}
			if want := test.want == adopted || test.want == ignored; there != want {
				t.Errorf("the endpoint is there: %v, want %v", there, want)
			}
			if err := l.Check(t.Context(), podnettest.RecordOf(req, link)); err != nil {
				t.Error(err)
			}
			if err := l.Unlink(t.Context(), podnettest.RecordOf(req, link)); err != nil {
				t.Error(err)
			}
		})
	}
}

// An endpoint that holds the address of a living interface of this process is no
// left-over, whatever else it looks like.
func TestLivingInterfaceIsNoLeftOver(t *testing.T) {
	hns := node()
	l := newLinker(t, hns)
	first := request(hns, 1)
	_, iface := mustLink(t, l, first)
	hns.RemoveNamespace(guid(t, first.NetNS)) // the runtime lost it; the record stands
	second := request(hns, 2)
	second.Addresses = first.Addresses
	if _, err := l.Link(t.Context(), second); !errors.Is(err, podnet.ErrPortExists) {
		t.Errorf("%v, want %v", err, podnet.ErrPortExists)
	}
	if got := names(hns); !slices.Equal(got, []string{iface.Name}) {
		t.Errorf("endpoints %q", got)
	}
}

// HNS takes two endpoints of one name; one is adopted and the other goes.
func TestOneOfTwoNamesakesStays(t *testing.T) {
	hns := hnstest.New()
	id := hns.AddNetwork(network)
	req := request(hns, 1)
	name := derive.Name("pod", req.Key)
	e := windows.Endpoint{Network: id, Name: name, MAC: derive.MACOfName(name), Addresses: []netip.Prefix{req.Addresses[0].Prefix}}
	hns.AddEndpoint(e)
	hns.AddEndpoint(e)
	l := newLinker(t, hns)
	link, iface := mustLink(t, l, req)
	if list := hns.Endpoints(); len(list) != 1 || list[0].ID.String() != link.Extra["hns-endpoint"] {
		t.Errorf("endpoints %v", list)
	}
	if err := l.Check(t.Context(), iface); err != nil {
		t.Error(err)
	}
}

// The race of a create between list and create: the error names who to look for.
func TestAddressTakenAtTheLastMoment(t *testing.T) {
	hns := node()
	hns.Set(windows.OpCreateEndpoint, hnstest.Fault{Err: &windows.HNSError{Op: "create endpoint", Code: windows.CodeAddressTaken}})
	_, err := newLinker(t, hns).Link(t.Context(), request(hns, 1))
	if !errors.Is(err, podnet.ErrPortExists) || !strings.Contains(err.Error(), "10.1.2.11") {
		t.Errorf("%v; want %v with the address", err, podnet.ErrPortExists)
	}
}

// A detach that hangs may still have its effect: the endpoint that it is about is
// not adopted, or the new interface would fall out of its namespace.
func TestEndpointThatIsBeingDetachedIsNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		req := request(hns, 1)
		busy := hnstest.Fault{Err: &windows.HNSError{Op: "call", Code: 0xaa}, Times: 1}
		hns.Set(windows.OpAttach, busy)
		hns.Set(windows.OpDeleteEndpoint, busy)
		release := hns.HangUp(windows.OpDetach)
		if _, err := l.Link(t.Context(), req); err == nil || len(names(hns)) != 1 {
			t.Fatalf("%v, endpoints %q; want an ADD that leaves one", err, names(hns))
		}
		_, iface := mustLink(t, l, req)
		release()
		synctest.Wait()
		if err := l.Check(t.Context(), iface); err != nil {
			t.Error(err)
		}
	})
}
