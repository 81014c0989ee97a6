package podnettest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// LinkerUnderTest is a Linker with the means to make containers for it. It is
// made anew for every test.
type LinkerUnderTest struct {
	Linker podnet.Linker
	// Request makes a container and returns the request for an interface in
	// it; a different n is a different container with other addresses.
	Request func(t *testing.T, n int) podnet.Request
	// Leftovers names what the Linker left on the host; empty after everything is unlinked.
	Leftovers func(t *testing.T) []string
	// Break, if set, damages the cable in a way that Check must notice.
	Break func(t *testing.T, iface ifstore.Interface)
}

// TestLinker runs the tests that every Linker has to pass.
func TestLinker(t *testing.T, newFn func(t *testing.T) LinkerUnderTest) {
	for _, test := range []struct {
		name string
		fn   func(*testing.T, LinkerUnderTest)
	}{
		{"life of a cable", lifeOfACable},
		{"asked values are kept", askedValues},
		{"unlink of what is missing", unlinkMissing},
		{"a second link of one key fails and harms nothing", linkTwice},
		{"an ended context leaves nothing", linkCancelled},
		{"containers at the same time", linkTogether},
		{"check notices damage", checkNotices},
	} {
		t.Run(test.name, func(t *testing.T) { test.fn(t, newFn(t)) })
	}
}

// RecordOf returns the record that podnet makes of a request and its cable.
func RecordOf(req podnet.Request, link podnet.Link) ifstore.Interface {
	return ifstore.Interface{
		Key: req.Key, Pod: req.Pod, NetNS: req.NetNS, IPAM: req.IPAM, VLAN: req.VLAN,
		Addresses: req.Addresses, Routes: req.Routes,
		Name: link.Name, MAC: link.MAC, MTU: link.MTU, Extra: link.Extra,
		State: ifstore.StateLinked,
	}
}

func mustLink(t *testing.T, u LinkerUnderTest, req podnet.Request) ifstore.Interface {
	t.Helper()
	link, err := u.Linker.Link(t.Context(), req)
	if err != nil {
		t.Fatalf("Link: %v", err)
	}
	return RecordOf(req, link)
}

func mustUnlink(t *testing.T, u LinkerUnderTest, iface ifstore.Interface) {
	t.Helper()
	if err := u.Linker.Unlink(t.Context(), iface); err != nil {
		t.Fatalf("Unlink: %v", err)
	}
}

func wantNoCables(t *testing.T, u LinkerUnderTest) {
	t.Helper()
	if left := u.Leftovers(t); len(left) > 0 {
		t.Errorf("left on the host: %q", left)
	}
}

func lifeOfACable(t *testing.T, u LinkerUnderTest) {
	iface := mustLink(t, u, u.Request(t, 1))
	switch {
	case iface.Name == "" || len(iface.Name) > 15:
		t.Errorf("host interface name %q; want 1 to 15 bytes", iface.Name)
	case iface.MAC.IsZero() || iface.MAC[0]&1 != 0:
		t.Errorf("MAC address %s; want a unicast address", iface.MAC)
	case iface.MTU <= 0:
		t.Errorf("MTU %d", iface.MTU)
	}
	if err := u.Linker.Check(t.Context(), iface); err != nil {
		t.Errorf("Check of a new cable: %v", err)
	}
	if prober, ok := u.Linker.(podnet.Prober); ok {
		if alive, err := prober.Alive(t.Context(), iface); err != nil || !alive {
			t.Errorf("Alive: %v, %v; want true", alive, err)
		}
	}
	mustUnlink(t, u, iface)
	if err := u.Linker.Check(t.Context(), iface); err == nil {
		t.Error("Check of a cable that is gone: nil")
	}
	wantNoCables(t, u)
}

func askedValues(t *testing.T, u LinkerUnderTest) {
	req := u.Request(t, 1)
	req.MAC, req.MTU = ifstore.MAC{2, 0, 0, 0, 0, 0x42}, 1400
	iface := mustLink(t, u, req)
	if iface.MAC != req.MAC || iface.MTU != req.MTU {
		t.Errorf("MAC %s and MTU %d, want %s and %d", iface.MAC, iface.MTU, req.MAC, req.MTU)
	}
	if err := u.Linker.Check(t.Context(), iface); err != nil {
		t.Errorf("Check: %v", err)
	}
	mustUnlink(t, u, iface)
	wantNoCables(t, u)
}

func unlinkMissing(t *testing.T, u LinkerUnderTest) {
	iface := mustLink(t, u, u.Request(t, 1))
	for range 3 {
		mustUnlink(t, u, iface)
	}
	if orphans, ok := u.Linker.(podnet.OrphanUnlinker); ok {
		if err := orphans.UnlinkOrphan(t.Context(), ifstore.Key{ContainerID: "neverseen", IfName: "eth0"}); err != nil {
			t.Errorf("UnlinkOrphan of an unknown key: %v", err)
		}
		again := mustLink(t, u, u.Request(t, 2))
		if err := orphans.UnlinkOrphan(t.Context(), again.Key); err != nil {
			t.Errorf("UnlinkOrphan: %v", err)
		}
	}
	wantNoCables(t, u)
}

func linkTwice(t *testing.T, u LinkerUnderTest) {
	req := u.Request(t, 1)
	iface := mustLink(t, u, req)
	if _, err := u.Linker.Link(t.Context(), req); err == nil {
		t.Error("a second Link of one key succeeds")
	}
	if err := u.Linker.Check(t.Context(), iface); err != nil {
		t.Errorf("the failed second Link harmed the first: %v", err)
	}
	mustUnlink(t, u, iface)
	wantNoCables(t, u)
}

func linkCancelled(t *testing.T, u LinkerUnderTest) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Linker.Link(ctx, u.Request(t, 1)); err == nil {
		t.Error("Link with an ended context succeeds")
	}
	wantNoCables(t, u)
}

func linkTogether(t *testing.T, u LinkerUnderTest) {
	const count = 8
	requests := make([]podnet.Request, count)
	for n := range requests {
		requests[n] = u.Request(t, n)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	names := make(map[string]ifstore.Key)
	var errs []error
	for _, req := range requests {
		group.Go(func() {
			link, err := u.Linker.Link(t.Context(), req)
			if err == nil {
				err = u.Linker.Check(t.Context(), RecordOf(req, link))
			}
			mu.Lock()
			if other, ok := names[link.Name]; ok && err == nil {
				err = fmt.Errorf("%s and %s share the name %s", other, req.Key, link.Name)
			}
			names[link.Name] = req.Key
			errs = append(errs, err)
			mu.Unlock()
			if err == nil {
				err = u.Linker.Unlink(t.Context(), RecordOf(req, link))
			}
			if err != nil {
				t.Errorf("%s: %v", req.Key, err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	wantNoCables(t, u)
}

func checkNotices(t *testing.T, u LinkerUnderTest) {
	if u.Break == nil {
		return
	}
	iface := mustLink(t, u, u.Request(t, 1))
	u.Break(t, iface)
	if err := u.Linker.Check(t.Context(), iface); err == nil {
		t.Error("Check of a damaged cable: nil")
	}
	mustUnlink(t, u, iface)
	wantNoCables(t, u)
}
