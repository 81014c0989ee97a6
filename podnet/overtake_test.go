package podnet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestAddAgain(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	first := mustAdd(t, n, "c1")
	w.Linker.ForgetCalls()
	again := mustAdd(t, n, "c1")
	if diff := cmp.Diff(first, again, compareNetip...); diff != "" {
		t.Errorf("repeated Add (-first +second):\n%s", diff)
	}
	if calls := w.Linker.Calls(); slices.Contains(calls, "Link c1/eth0") || slices.Contains(calls, "Announce c1/eth0") {
		t.Errorf("a repeated Add calls the linker: %q", calls)
	}
	for name, change := range map[string]func(*podnet.Request){
		"network namespace": func(r *podnet.Request) { r.NetNS = "/run/netns/other" },
		"Pod":               func(r *podnet.Request) { r.Pod.Name = "other" },
		"Pod UID":           func(r *podnet.Request) { r.Pod.UID = "other" },
		"MAC address":       func(r *podnet.Request) { r.MAC = ifstore.MAC{2, 0, 0, 0, 0, 1} },
		"MTU":               func(r *podnet.Request) { r.MTU = 1400 },
		"VLAN":              func(r *podnet.Request) { r.VLAN = 7 },
	} {
		req := podnettest.NewRequest("c1")
		change(&req)
		_, err := n.Add(t.Context(), req)
		if !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), name+" is ") {
			t.Errorf("Add with another %s: %v", name, err)
		}
	}
	wantReady(t, w, n, "c1") // a failed repeat takes nothing away
}

// Two sandboxes of one Pod coexist once both are finished; deleting the older
// leaves the newer alone.
func TestTwoSandboxesOfOnePod(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	r1, r2 := podnettest.NewRequest("c1"), podnettest.NewRequest("c2")
	r2.Pod = r1.Pod
	for _, r := range []podnet.Request{r1, r2} {
		if _, err := n.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	wantReady(t, w, n, "c1")
	wantReady(t, w, n, "c2")
	mustDelete(t, n, "c1")
	wantReady(t, w, n, "c2")
	mustDelete(t, n, "c2")
	wantNothingLeft(t, w, n)
}

func TestNewerSandboxEndsTheAddOfTheOlder(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	w.Bridge.Slow(true)
	r1, r2 := podnettest.NewRequest("c1"), podnettest.NewRequest("c2")
	r2.Pod = r1.Pod
	result := make(chan error, 1)
	go func() {
		_, err := n.Add(context.Background(), r1)
		result <- err
	}()
	eventually(t, "c1 waits for its number", func() bool { return n.Waiting() == 1 })
	second := make(chan error, 1)
	go func() {
		_, err := n.Add(context.Background(), r2)
		second <- err
	}()
	begun := time.Now()
	err := <-result
	if !errors.Is(err, podnet.ErrOvertaken) || !strings.Contains(err.Error(), "c2") {
		t.Errorf("older Add: %v, want ErrOvertaken naming c2", err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the older Add ended after %v, want < 1 s", took)
	}
	w.Bridge.Slow(false)
	if err := <-second; err != nil {
		t.Errorf("newer Add: %v", err)
	}
	wantReady(t, w, n, "c2")
	mustDelete(t, n, "c2")
	wantNothingLeft(t, w, n)
}

func TestDeleteEndsTheAdd(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	w.Bridge.Slow(true)
	result := make(chan error, 1)
	go func() {
		_, err := n.Add(context.Background(), podnettest.NewRequest("c1"))
		result <- err
	}()
	eventually(t, "c1 waits for its number", func() bool { return n.Waiting() == 1 })
	mustDelete(t, n, "c1")
	if err := <-result; !errors.Is(err, podnet.ErrOvertaken) {
		t.Errorf("Add: %v, want ErrOvertaken", err)
	}
	wantNothingLeft(t, w, n)
}

func TestAddressesInUse(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	have := mustAdd(t, n, "c1")
	req := podnettest.NewRequest("c2")
	req.IPAM, req.Addresses = "static", have.Addresses
	_, err := n.Add(t.Context(), req)
	if !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), "c1/eth0 of Pod default/pod-c1") {
		t.Errorf("Add with an address of c1: %v, want an error that names c1", err)
	}
	req = podnettest.NewRequest("c3")
	req.MAC = have.MAC
	_, err = n.Add(t.Context(), req)
	if !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), "c1/eth0") {
		t.Errorf("Add with the MAC address of c1: %v, want an error that names c1", err)
	}
	mustDelete(t, n, "c1")
	wantNothingLeft(t, w, n)
}

// Whoever cancelled an Add counts on it to leave nothing, however far it came.
func TestAddCancelledAtTheVeryEnd(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	ctx, cancel := context.WithCancel(t.Context())
	w.Linker.Before("Announce", func(context.Context) error { cancel(); return nil })
	if _, err := n.Add(ctx, podnettest.NewRequest("c1")); !errors.Is(err, context.Canceled) {
		t.Errorf("Add: %v, want it cancelled", err)
	}
	wantNothingLeft(t, w, n)
}
