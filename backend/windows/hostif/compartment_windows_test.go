package hostif_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet/async"
)

func vnic(name string, index, compartment int) fakehns.Adapter {
	return fakehns.Adapter{
		Name: hostif.Alias(name), Index: index, MTU: 1450, Up: true, Compartment: compartment,
		MAC: net.HardwareAddr{0x00, 0x15, 0x5d, 1, 2, byte(index)}, Addrs: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/24")},
	}
}

// Issue 4: the reason for this package. What it asks Windows for is seen; what
// package net asks for is not.
func TestVNICInAnotherCompartmentIsListed(t *testing.T) {
	hns := fakehns.Attach(t)
	before := list(t)
	if len(before) == 0 {
		t.Fatal("the machine has no interfaces")
	}
	hns.SetAdapter(vnic("pod1", 101, 7))
	hns.SetAdapter(vnic("host1", 102, 1))

	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	seen := func(alias string) bool {
		return slices.ContainsFunc(interfaces, func(i net.Interface) bool { return i.Name == alias })
	}
	if seen("vEthernet (pod1)") || !seen("vEthernet (host1)") {
		t.Errorf("package net sees the Pod's vNIC: %v, the host's: %v; want only the latter", seen("vEthernet (pod1)"), seen("vEthernet (host1)"))
	}
	got, ok := hostif.Find(list(t), "vEthernet (pod1)")
	want := hostif.Adapter{
		Alias: "vEthernet (pod1)", Description: got.Description, GUID: got.GUID, Index: 101, LUID: got.LUID, Compartment: 7,
		MTU: 1450, MAC: ifstore.MAC{0x00, 0x15, 0x5d, 1, 2, 101}, Up: true,
	}
	if !ok || got != want || !strings.HasPrefix(got.GUID, "{") || got.LUID == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	hns.RemoveAdapter("vEthernet (pod1)")
	hns.RemoveAdapter("vEthernet (host1)")
	if after := list(t); !slices.Equal(after, before) {
		t.Errorf("%+v, want %+v", after, before)
	}
}

// The list may outgrow any buffer between two calls.
func TestListGrowsWithTheNode(t *testing.T) {
	hns := fakehns.Attach(t)
	for n := range 400 {
		hns.SetAdapter(vnic(fmt.Sprintf("pod%03d", n), 1000+n, 2+n))
	}
	got := list(t)
	for n := range 400 {
		alias := hostif.Alias(fmt.Sprintf("pod%03d", n))
		if a, ok := hostif.Find(got, alias); !ok || a.Index != uint32(1000+n) || a.Compartment != uint32(2+n) {
			t.Fatalf("%s: %+v, %v", alias, a, ok)
		}
	}
}

// As the readiness backend uses it.
func TestAppearanceSeesAVNIC(t *testing.T) {
	hns := fakehns.Attach(t)
	here := async.NewAppearance(hostif.Names(hostif.List), time.Nanosecond)
	check := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return here.Check(ctx, []string{hostif.Alias("pod1")})[0]
	}
	if err := check(); err == nil || err.Error() != "host interface vEthernet (pod1) has not appeared yet" {
		t.Errorf("%v", err)
	}
	hns.SetAdapter(vnic("pod1", 101, 7))
	if err := check(); err != nil {
		t.Error(err)
	}
}
