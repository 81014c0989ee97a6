package windows_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/ifstore"
)

func TestCheckNamesEachDifference(t *testing.T) {
	elsewhere := windows.GUID{9}
	for _, test := range []struct {
		name   string
		change func(*windows.Endpoint)
		words  []string
	}{
		{"MAC address", func(e *windows.Endpoint) { e.MAC = ifstore.MAC{2, 0, 0, 0, 0, 9} }, []string{"MAC address is 02:00:00:00:00:09"}},
		{"address lost", func(e *windows.Endpoint) { e.Addresses = nil }, []string{"address 10.1.2.11/24 is missing"}},
		{"address added", func(e *windows.Endpoint) { e.Addresses = append(e.Addresses, netip.MustParsePrefix("10.1.2.99/24")) }, []string{"address 10.1.2.99/24 is not its own"}},
		{"detached", func(e *windows.Endpoint) { e.Namespace = windows.GUID{} }, []string{"is in no namespace"}},
		{"in another namespace", func(e *windows.Endpoint) { e.Namespace = elsewhere }, []string{"namespace is " + elsewhere.String()}},
		{"on another network", func(e *windows.Endpoint) { e.Network = elsewhere }, []string{"network is " + elsewhere.String()}},
		{"degraded", func(e *windows.Endpoint) { e.State = windows.StateDegraded }, []string{"state is 5 (degraded)"}},
		{"another in its place", func(e *windows.Endpoint) { e.ID = elsewhere }, []string{"vanished", "in its place is", elsewhere.String()}},
		{"several at once", func(e *windows.Endpoint) { e.Addresses, e.Namespace = nil, windows.GUID{} }, []string{"missing", "; ", "in no namespace"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			hns := node()
			l := newLinker(t, hns)
			_, iface := mustLink(t, l, request(hns, 1))
			_, well := mustLink(t, l, request(hns, 2))
			hns.ChangeEndpoints(iface.Name, test.change)
			err := l.Check(t.Context(), iface)
			results, auditErr := l.Audit(t.Context(), []ifstore.Interface{well, iface})
			if auditErr != nil || results[0] != nil {
				t.Fatalf("%v, %v", results, auditErr)
			}
			for what, err := range map[string]error{"Check": err, "Audit": results[1]} {
				for _, want := range append(test.words, iface.Name) {
					if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
						t.Errorf("%s: %v does not say %q in one line", what, err, want)
					}
				}
			}
		})
	}
}

// HN-26, HN-32: endpoints vanish behind our back, all or one. It is reported for
// each Pod, no Pod is taken for dead by it, and DEL ends clean.
func TestVanishedEndpointsAreReportedAndNotSwept(t *testing.T) {
	for _, test := range []struct {
		name   string
		vanish func(*hnstest.HNS, []ifstore.Interface)
		lost   int
	}{
		{"HNS restarts and forgets", func(h *hnstest.HNS, _ []ifstore.Interface) { h.Forget(false) }, 10},
		{"HNS forgets its networks, too", func(h *hnstest.HNS, _ []ifstore.Interface) { h.Forget(true) }, 10},
		{"another daemon removes one", func(h *hnstest.HNS, i []ifstore.Interface) { h.RemoveEndpoints(i[0].Name) }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			hns := node()
			l := newLinker(t, hns)
			var ifaces []ifstore.Interface
			for n := range 10 {
				_, iface := mustLink(t, l, request(hns, n))
				ifaces = append(ifaces, iface)
			}
			test.vanish(hns, ifaces)
			results, err := l.Audit(t.Context(), ifaces)
			if err != nil {
				t.Fatal(err)
			}
			for i, iface := range ifaces {
				lost := i < test.lost
				if got := errors.Is(results[i], windows.ErrVanished); got != lost {
					t.Errorf("%s: audit says %v", iface.Name, results[i])
				}
				alive, err := l.Alive(t.Context(), iface)
				if !lost && (err != nil || !alive) || lost && !errors.Is(err, windows.ErrVanished) {
					t.Errorf("%s: alive %v, %v", iface.Name, alive, err)
				}
				if err := l.Unlink(t.Context(), iface); err != nil {
					t.Errorf("DEL: %v", err)
				}
			}
		})
	}
}

func TestAliveOnlyFalseWithProof(t *testing.T) {
	hns := node()
	l := newLinker(t, hns)
	_, iface := mustLink(t, l, request(hns, 1))
	if alive, err := l.Alive(t.Context(), iface); err != nil || !alive {
		t.Errorf("a living sandbox: %v, %v", alive, err)
	}
	hns.Set(windows.OpList, hnstest.Fault{Err: busy})
	if _, err := l.Alive(t.Context(), iface); !errors.Is(err, busy) {
		t.Errorf("HNS does not answer: %v", err)
	}
	hns.Set(windows.OpList, hnstest.Fault{})
	hns.RemoveNamespace(guid(t, iface.NetNS))
	if alive, err := l.Alive(t.Context(), iface); err != nil || alive {
		t.Errorf("the endpoint is there, its namespace is not: %v, %v", alive, err)
	}
	iface.Extra, iface.NetNS = nil, ""
	if alive, err := l.Alive(t.Context(), iface); err != nil || !alive {
		t.Errorf("nothing recorded: %v, %v", alive, err)
	}
}

// HN-25: what HNS says of an endpoint's state is seen, in number and word.
func TestEndpointsTellTheirStates(t *testing.T) {
	hns := node()
	l := newLinker(t, hns)
	var want []string
	for n, state := range []windows.EndpointState{1, 2, 3, 4, 5, 6, 77} {
		_, iface := mustLink(t, l, request(hns, n))
		hns.PinState(iface.Name, state)
		want = append(want, iface.Name)
	}
	endpoints, err := l.Endpoints(t.Context())
	if err != nil || len(endpoints) != len(want) {
		t.Fatalf("%v, %v", endpoints, err)
	}
	words := []string{"1 (created)", "2 (attached)", "3 (attached, shared)", "4 (detached)", "5 (degraded)", "6 (destroyed)", "77"}
	for i, e := range endpoints {
		if e.Name != want[i] || e.State.String() != words[i] {
			t.Errorf("%s has state %v, want %s with %s", e.Name, e.State, want[i], words[i])
		}
	}
	hns.Set(windows.OpList, hnstest.Fault{Err: busy})
	if _, err := l.Endpoints(t.Context()); !errors.Is(err, busy) {
		t.Error(err)
	}
}
