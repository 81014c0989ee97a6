package windows_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// HN-19, HN-20, HN-22, HN-31: DEL in every state of the node ends clean, and ends
// the same when it is repeated.
func TestUnlinkWhateverIsGoneOrFails(t *testing.T) {
	unsupported := &windows.HNSError{Op: "detach", Code: windows.CodeRequestUnsupported}
	for _, test := range []struct {
		name   string
		change func(*hnstest.HNS, ifstore.Interface)
	}{
		{"nothing is gone", func(*hnstest.HNS, ifstore.Interface) {}},
		{"namespace gone", func(h *hnstest.HNS, i ifstore.Interface) { h.RemoveNamespace(guid(nil, i.NetNS)) }},
		{"endpoint gone", func(h *hnstest.HNS, i ifstore.Interface) { h.RemoveEndpoints(i.Name) }},
		{"network gone, and its endpoints with it", func(h *hnstest.HNS, _ ifstore.Interface) { h.RemoveNetworks("podnet") }},
		{"HNS forgot all", func(h *hnstest.HNS, _ ifstore.Interface) { h.Forget(true) }},
		{"detached already", func(h *hnstest.HNS, i ifstore.Interface) {
			h.ChangeEndpoints(i.Name, func(e *windows.Endpoint) { e.Namespace = windows.GUID{} })
		}},
		{"detach fails", func(h *hnstest.HNS, _ ifstore.Interface) { h.Set(windows.OpDetach, hnstest.Fault{Err: busy}) }},
		{"detach refused while a container holds the namespace", func(h *hnstest.HNS, _ ifstore.Interface) { h.Set(windows.OpDetach, hnstest.Fault{Err: unsupported}) }},
		{"detach fails although it was done", func(h *hnstest.HNS, _ ifstore.Interface) { h.Set(windows.OpDetach, hnstest.Fault{After: busy}) }},
	} {
		for _, recorded := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				hns := node()
				l := newLinker(t, hns)
				_, bystander := mustLink(t, l, request(hns, 2))
				_, iface := mustLink(t, l, request(hns, 1))
				test.change(hns, iface)
				if !recorded {
					iface.Extra = nil
				}
				l = newLinker(t, hns) // a restarted agent
				for range 3 {
					if err := l.Unlink(t.Context(), iface); err != nil {
						t.Error(err)
					}
				}
				if slices.Contains(names(hns), iface.Name) {
					t.Error("the endpoint is still there")
				}
				if len(hns.Networks()) > 0 && !slices.Contains(names(hns), bystander.Name) {
					t.Error("another interface's endpoint went with it")
				}
			})
		}
	}
}

// A DEL succeeds only when the endpoint is gone, and tells what failed before.
func TestUnlinkTellsWhatFailed(t *testing.T) {
	hns := node()
	l := newLinker(t, hns)
	_, iface := mustLink(t, l, request(hns, 1))
	refused := &windows.HNSError{Op: "delete", Code: 0x803b002c}
	hns.Set(windows.OpDetach, hnstest.Fault{Err: busy})
	hns.Set(windows.OpDeleteEndpoint, hnstest.Fault{Err: refused, Times: 1})
	err := l.Unlink(t.Context(), iface)
	if !errors.Is(err, busy) || !errors.Is(err, refused) || !strings.Contains(err.Error(), iface.Name) {
		t.Errorf("%v; want both errors and the name %s", err, iface.Name)
	}
	if err := l.Unlink(t.Context(), iface); err != nil {
		t.Error(err)
	}
}

func TestUnlinkOrphan(t *testing.T) {
	hns := node()
	nat := hns.AddNetwork(windows.Network{Name: "nat", Type: "NAT"})
	l := newLinker(t, hns)
	req := request(hns, 1)
	req.MAC = ifstore.MAC{2, 0, 0, 0, 0, 7} // one that does not follow from the name
	_, iface := mustLink(t, l, req)
	stranger := hns.AddEndpoint(windows.Endpoint{Network: nat, Name: iface.Name})

	l = newLinker(t, hns)
	for range 2 {
		if err := l.UnlinkOrphan(t.Context(), req.Key); err != nil {
			t.Error(err)
		}
	}
	if list := hns.Endpoints(); len(list) != 1 || list[0].ID != stranger {
		t.Errorf("endpoints %v; want the stranger's alone", list)
	}
	hns.Set(windows.OpList, hnstest.Fault{Err: busy})
	if err := l.UnlinkOrphan(t.Context(), req.Key); !errors.Is(err, busy) {
		t.Errorf("%v; what HNS does not tell is not done", err)
	}
}

// What DEL and CHECK need after a restart is in the external_ids.
func TestRecordSurvivesARestart(t *testing.T) {
	hns := node()
	_, iface := mustLink(t, newLinker(t, hns), request(hns, 1))
	again, err := podnet.DecodeExternalIDs(podnet.EncodeExternalIDs("podnet", iface))
	if err != nil {
		t.Fatal(err)
	}
	again.Name = iface.Name // the port's own
	l := newLinker(t, hns)
	if err := l.Check(t.Context(), again); err != nil {
		t.Error(err)
	}
	if alive, err := l.Alive(t.Context(), again); err != nil || !alive {
		t.Errorf("alive %v, %v", alive, err)
	}
	hns.ForgetCalls()
	if err := l.Unlink(t.Context(), again); err != nil || len(hns.Endpoints()) != 0 {
		t.Errorf("%v; left %q", err, names(hns))
	}
	id := iface.Extra["hns-endpoint"]
	if calls := hns.Calls(); !slices.Equal(calls, []string{"detach " + id, "delete endpoint " + id}) {
		t.Errorf("calls %q", calls)
	}
}

func TestNetworkIsFoundMadeAndFoundAgain(t *testing.T) {
	hns := hnstest.New()
	l := newLinker(t, hns)
	req := request(hns, 1)

	// HN-21: Pods come first, after a reboot.
	if _, err := l.Link(t.Context(), req); !errors.Is(err, podnet.ErrTryAgain) || !errors.Is(err, windows.ErrNoNetwork) || len(hns.Networks()) != 0 {
		t.Errorf("%v, networks %v; an ADD makes no network", err, hns.Networks())
	}
	n, created, err := l.EnsureNetwork(t.Context())
	if err != nil || !created || n.Name != network.Name || n.Adapter != network.Adapter {
		t.Fatalf("%+v, %v, %v", n, created, err)
	}
	if again, created, err := l.EnsureNetwork(t.Context()); err != nil || created || again.ID != n.ID {
		t.Errorf("%+v, %v, %v", again, created, err)
	}
	_, first := mustLink(t, l, req)

	// Somebody makes it anew while the agent runs.
	hns.RemoveNetworks(network.Name)
	anew := hns.AddNetwork(network)
	link, _ := mustLink(t, l, request(hns, 2))
	if link.Extra["hns-network"] != anew.String() {
		t.Errorf("on network %s, want %s", link.Extra["hns-network"], anew)
	}
	if err := l.Check(t.Context(), first); !errors.Is(err, windows.ErrVanished) {
		t.Errorf("%v, want %v", err, windows.ErrVanished)
	}

	// It goes for good.
	hns.RemoveNetworks(network.Name)
	if _, err := l.Link(t.Context(), request(hns, 3)); !errors.Is(err, podnet.ErrTryAgain) || !errors.Is(err, windows.ErrNoNetwork) {
		t.Errorf("%v", err)
	}
	if _, created, err := l.EnsureNetwork(t.Context()); err != nil || !created {
		t.Errorf("%v, %v", created, err)
	}
	mustLink(t, l, request(hns, 4))
}

func TestNetworkThatDoesNotFit(t *testing.T) {
	wide := windows.Subnet{Prefix: netip.MustParsePrefix("10.1.0.0/16")}
	for _, test := range []struct {
		name  string
		there []windows.Network
		words string // "": it fits
	}{
		{"another type", []windows.Network{{Name: "podnet", Type: "NAT"}}, `of type "NAT"`},
		{"another adapter", []windows.Network{{Name: "podnet", Type: windows.Transparent, Adapter: "Wi-Fi"}}, `on adapter "Wi-Fi"`},
		{"another subnet", []windows.Network{{Name: "podnet", Type: windows.Transparent, Subnets: []windows.Subnet{{Prefix: netip.MustParsePrefix("10.1.2.0/25")}}}}, "no subnet with 10.1.2.0/24"},
		{"two of one name", []windows.Network{network, network}, "2 networks"},
		{"the adapter is in use", []windows.Network{{Name: "other", Type: windows.Transparent, Adapter: network.Adapter}}, "another network may use the adapter"},
		{"a wider subnet", []windows.Network{{Name: "podnet", Type: windows.Transparent, Subnets: []windows.Subnet{wide}}}, ""},
		{"no subnets", []windows.Network{{Name: "podnet", Type: windows.Transparent}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			hns := hnstest.New()
			for _, n := range test.there {
				hns.AddNetwork(n)
			}
			l := newLinker(t, hns)
			_, created, err := l.EnsureNetwork(t.Context())
			_, linkErr := l.Link(t.Context(), request(hns, 1))
			if created || len(hns.Networks()) != len(test.there) {
				t.Errorf("a network was made: %v", hns.Networks())
			}
			if test.words == "" {
				if err != nil || linkErr != nil {
					t.Errorf("%v; %v", err, linkErr)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v does not say %q", err, test.words)
			}
			if linkErr == nil {
				t.Error("an interface was made on it")
			}
		})
	}
	t.Run("no uplink is named", func(t *testing.T) {
		l := newLinker(t, hnstest.New(), func(c *windows.Config) { c.Network = windows.Network{Name: "x"} })
		if _, _, err := l.EnsureNetwork(t.Context()); !errors.Is(err, windows.ErrNoNetwork) || !strings.Contains(err.Error(), "uplink") {
			t.Error(err)
		}
	})
}
