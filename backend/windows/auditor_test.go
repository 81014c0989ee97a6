package windows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// heard is a podnet.Events that remembers.
type heard struct {
	mu     sync.Mutex
	events []string
}

func (h *heard) Event(_ context.Context, e podnet.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, fmt.Sprintf("%s %s %s", e.Pod.Name, e.Type, e.Message))
}

// take returns what was heard since the last call.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.events
	h.events = nil
	return slices.Sorted(slices.Values(list))
}

func TestAuditorReportsEachPodOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hns := node()
		l := newLinker(t, hns)
		var mu sync.Mutex
		var ifaces []ifstore.Interface
		for n, state := range []ifstore.State{ifstore.StateReady, ifstore.StateReady, ifstore.StateWaiting, ifstore.StateWithdrawing} {
			_, iface := mustLink(t, l, request(hns, n))
			iface.State, iface.Gen = state, "life1"
			ifaces = append(ifaces, iface)
		}
		var events heard
		auditor, err := windows.NewAuditor(windows.AuditorConfig{Linker: l, Events: &events, Interfaces: func() []ifstore.Interface {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(ifaces)
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- auditor.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		wants := func(when string, faults int, want ...string) {
			t.Helper()
			got := events.take()
			ok := len(got) == len(want) && auditor.Faults() == faults
			for i := range min(len(got), len(want)) {
				ok = ok && strings.HasPrefix(got[i], want[i])
			}
			if !ok {
				t.Errorf("%s: heard %q with %d faults, want %q and %d", when, got, auditor.Faults(), want, faults)
			}
		}
		detach := func(e *windows.Endpoint) { e.Namespace = windows.GUID{} }
		attached := guid(t, ifaces[1].NetNS)

		after(3 * time.Minute)
		wants("all is well", 0)
		hns.ChangeEndpoints(ifaces[1].Name, detach)
		after(time.Minute)
		hns.ChangeEndpoints(ifaces[1].Name, func(e *windows.Endpoint) { e.Namespace = attached })
		after(2 * time.Minute)
		wants("seen once", 0)
		hns.Set(windows.OpList, hnstest.Fault{Err: busy})
		after(5 * time.Minute)
		wants("HNS does not answer", 0)
		hns.Set(windows.OpList, hnstest.Fault{})

		hns.ChangeEndpoints(ifaces[1].Name, detach)
		after(2 * time.Minute)
		wants("seen twice", 1, "pod1 NetworkNotReady endpoint \""+ifaces[1].Name+"\": is in no namespace")
		after(time.Hour)
		wants("no news", 1)
		hns.Forget(true) // those that wait or go are not this one's to report
		after(2 * time.Minute)
		wants("all vanished", 2, "pod0 NetworkNotReady endpoint \""+ifaces[0].Name, "pod1 NetworkNotReady endpoint \""+ifaces[1].Name)
		mu.Lock()
		ifaces[0].Gen = "life2"
		mu.Unlock()
		after(time.Minute)
		wants("a new life", 1)
		after(time.Minute)
		wants("that has no endpoint either", 2, "pod0 NetworkNotReady")
		mu.Lock()
		ifaces = nil
		mu.Unlock()
		after(time.Minute)
		wants("deleted", 0)
	})
}

func TestAuditorTellsThatItIsWellAgain(t *testing.T) {
	inHNSNode(t, func(t *testing.T, n *hnsNode, network *podnet.Network) {
		iface, err := network.Add(t.Context(), n.request("c"))
		if err != nil {
			t.Fatal(err)
		}
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, iface, time.Minute)
		var events heard
		auditor, err := windows.NewAuditor(windows.AuditorConfig{
			Linker: newLinker(t, n.hns, func(c *windows.Config) { c.Network = windows.Network{} }), Interfaces: network.Interfaces, Events: &events, Period: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = auditor.Run(t.Context()) }()
		mac := iface.MAC
		n.hns.ChangeEndpoints(iface.Name, func(e *windows.Endpoint) { e.MAC[5]++ })
		after(5 * time.Second)
		n.hns.ChangeEndpoints(iface.Name, func(e *windows.Endpoint) { e.MAC = mac })
		after(5 * time.Second)
		got := events.take()
		if len(got) != 2 || !strings.Contains(got[0], "NetworkNotReady endpoint") || !strings.Contains(got[1], "NetworkReady HNS has") {
			t.Errorf("heard %q", got)
		}
	})
}
