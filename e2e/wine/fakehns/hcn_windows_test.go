package fakehns

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"unsafe"

	"github.com/Microsoft/hcsshim/hcn"
	"golang.org/x/sys/windows"
)

// These run the real hcsshim, and by it the DLLs, against the Server.

func newNetwork(t *testing.T) *hcn.HostComputeNetwork {
	t.Helper()
	policy, err := json.Marshal(hcn.NetAdapterNameNetworkPolicySetting{NetworkAdapterName: "Ethernet"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := (&hcn.HostComputeNetwork{
		Type: hcn.Transparent, Name: "pods", SchemaVersion: hcn.V2SchemaVersion(),
		Ipams: []hcn.Ipam{{Type: "Static", Subnets: []hcn.Subnet{{IpAddressPrefix: "10.244.1.0/24",
			Routes: []hcn.Route{{NextHop: "10.244.1.1", DestinationPrefix: "0.0.0.0/0"}}}}}},
		Policies: []hcn.NetworkPolicy{{Type: hcn.NetAdapterName, Settings: policy}},
	}).Create()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newEndpoint(n *hcn.HostComputeNetwork, name, ip string) (*hcn.HostComputeEndpoint, error) {
	return n.CreateEndpoint(&hcn.HostComputeEndpoint{
		Name: name, MacAddress: "0A-58-0A-F4-01-05", SchemaVersion: hcn.V2SchemaVersion(),
		IpConfigurations: []hcn.IpConfig{{IpAddress: ip, PrefixLength: 24}},
		Routes:           []hcn.Route{{NextHop: "10.244.1.1", DestinationPrefix: "0.0.0.0/0"}},
	})
}

func code(c uint32) hcn.ErrorCode { return hcn.ErrorCode(c) }

func TestHcsshimRunsAPodsLife(t *testing.T) {
	s := Attach(t)
	if f := hcn.GetSupportedFeatures(); !f.Api.V2 {
		t.Errorf("features %+v", f)
	}
	n := newNetwork(t)
	e, err := newEndpoint(n, "pod-é", "10.244.1.5")
	if err != nil || e.Name != "pod-é" || e.MacAddress != "0A-58-0A-F4-01-05" {
		t.Fatalf("endpoint %+v, %v", e, err)
	}
	ns, err := hcn.NewNamespace(hcn.NamespaceTypeHost).Create()
	if err != nil {
		t.Fatal(err)
	}
	if err := hcn.AddNamespaceEndpoint(ns.Id, e.Id); err != nil {
		t.Fatal(err)
	}
	if ids, err := hcn.GetNamespaceEndpointIds(ns.Id); err != nil || len(ids) != 1 || ids[0] != e.Id {
		t.Errorf("endpoints of the namespace: %v, %v", ids, err)
	}
	if got, err := hcn.GetEndpointByName("pod-é"); err != nil || got.HostComputeNamespace != ns.Id {
		t.Errorf("endpoint %+v, %v", got, err)
	}
	if l, err := hcn.ListEndpointsOfNetwork(n.Id); err != nil || len(l) != 1 {
		t.Errorf("endpoints of the network: %v, %v", l, err)
	}
	policy := hcn.PolicyEndpointRequest{Policies: []hcn.EndpointPolicy{{Type: hcn.ACL, Settings: json.RawMessage(`{"Action":"Allow"}`)}}}
	if err := e.ApplyPolicy(hcn.RequestTypeAdd, policy); err != nil {
		t.Error(err)
	}
	for _, step := range []func() error{
		func() error { return hcn.RemoveNamespaceEndpoint(ns.Id, e.Id) }, e.Delete, ns.Delete, n.Delete,
	} {
		if err := step(); err != nil {
			t.Error(err)
		}
	}
	if len(s.Networks())+len(s.Endpoints())+len(s.Namespaces())+s.OpenHandles() != 0 {
		t.Error("something is left")
	}
}

func TestHcsshimTellsOurCodes(t *testing.T) {
	s := Attach(t)
	n := newNetwork(t)
	e, err := newEndpoint(n, "a", "10.244.1.5")
	if err != nil {
		t.Fatal(err)
	}
	_, err = newEndpoint(n, "b", "10.99.0.1")
	if !hcn.CheckErrorWithCode(err, code(InvalidIP)) {
		t.Errorf("address out of the subnet: %v", err)
	}
	_, err = newEndpoint(n, "b", "10.244.1.5")
	if !hcn.CheckErrorWithCode(err, code(AddressInvalid)) {
		t.Errorf("address taken: %v", err)
	}
	s.Intercept(Refuse("HcnDeleteEndpoint", Busy, "The requested resource is in use. "))
	if err := e.Delete(); !hcn.CheckErrorWithCode(err, hcn.ErrorCode(windows.ERROR_BUSY)) {
		t.Errorf("busy: %v", err)
	}
	s.Intercept(nil)
	s.Restart()
	if err := e.Delete(); !hcn.IsElementNotFoundError(err) {
		t.Errorf("gone: %v", err)
	}
	s.SetNotFound(EndpointNotFound)
	if err := e.Delete(); !hcn.CheckErrorWithCode(err, code(EndpointNotFound)) {
		t.Errorf("gone, by the other code: %v", err)
	}
	s.Close()
	if _, err := hcn.ListEndpoints(); !hcn.CheckErrorWithCode(err, hcn.ErrorCode(windows.RPC_S_SERVER_UNAVAILABLE)) {
		t.Errorf("stopped: %v", err)
	}
}

func TestAHungCallHoldsNoOther(t *testing.T) {
	s := Attach(t)
	n := newNetwork(t)
	release, cancel := context.WithCancel(t.Context())
	defer cancel()
	hung := make(chan struct{}, 1)
	hang := Hang(release, "HcnCreateEndpoint")
	s.Intercept(func(ctx context.Context, c Call) *Reply {
		if c.Op == "HcnCreateEndpoint" {
			hung <- struct{}{}
		}
		return hang(ctx, c)
	})
	done := make(chan error, 1)
	go func() {
		_, err := newEndpoint(n, "a", "10.244.1.5")
		done <- err
	}()
	<-hung
	if _, err := hcn.ListNetworks(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	s := Attach(t)
	n := newNetwork(t)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			e, err := newEndpoint(n, fmt.Sprint("e", i), fmt.Sprintf("10.244.1.%d", i+10))
			if err == nil {
				err = e.Delete()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(s.Endpoints()) != 0 || s.OpenHandles() != 0 {
		t.Errorf("left: %v, %d handles", s.Endpoints(), s.OpenHandles())
	}
}

func TestAdaptersAreSeen(t *testing.T) {
	s := Attach(t)
	before, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	mac := net.HardwareAddr{0x0a, 0x58, 10, 244, 1, 5}
	s.SetAdapter(Adapter{Name: "vEthernet (abc)", Index: 4711, MTU: 1400, Up: true, MAC: mac,
		Addrs: []netip.Prefix{netip.MustParsePrefix("10.244.1.5/24"), netip.MustParsePrefix("fd00::5/64")}})
	s.SetAdapter(Adapter{Name: "Ethernet 2", Index: 4712, MTU: 1500})
	i, err := net.InterfaceByName("vEthernet (abc)")
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := i.Addrs()
	if err != nil || fmt.Sprint(addrs) != "[10.244.1.5/24 fd00::5/64]" {
		t.Errorf("addresses %v, %v", addrs, err)
	}
	if i.Index != 4711 || i.MTU != 1400 || i.HardwareAddr.String() != mac.String() || i.Flags&net.FlagUp == 0 {
		t.Errorf("%+v", i)
	}
	if after, err := net.Interfaces(); err != nil || len(after) != len(before)+2 {
		t.Errorf("%d interfaces, then %d, %v", len(before), len(after), err)
	}
	s.RemoveAdapter("vEthernet (abc)")
	if _, err := net.InterfaceByName("vEthernet (abc)"); err == nil {
		t.Error("a removed adapter is still there")
	}
}

// A container's adapter is in a compartment of its own: net.Interfaces does
// not show it, on a real node either.
func TestContainersAdaptersNeedTheFlags(t *testing.T) {
	s := Attach(t)
	s.SetAdapter(Adapter{Name: "vEthernet (pod)", Index: 4711, Compartment: 3})
	if _, err := net.InterfaceByName("vEthernet (pod)"); err == nil {
		t.Error("net.InterfaceByName sees another compartment's adapter")
	}
	const allInterfaces, allCompartments = 0x100, 0x200
	for _, flags := range []uint32{0, allInterfaces, allCompartments, allInterfaces | allCompartments} {
		want := flags == allInterfaces|allCompartments
		if got := listed(t, "vEthernet (pod)", flags); got != want {
			t.Errorf("flags %#x: listed %v, want %v", flags, got, want)
		}
	}
}

func listed(t *testing.T, name string, flags uint32) bool {
	t.Helper()
	size := uint32(64 << 10)
	buf := make([]byte, size)
	first := (*windows.IpAdapterAddresses)(unsafe.Pointer(&buf[0]))
	if err := windows.GetAdaptersAddresses(windows.AF_UNSPEC, flags, 0, first, &size); err != nil {
		t.Fatal(err)
	}
	for a := first; a != nil; a = a.Next {
		if windows.UTF16PtrToString(a.FriendlyName) == name {
			return true
		}
	}
	return false
}
