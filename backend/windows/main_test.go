package windows_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var subnet = windows.Subnet{Prefix: netip.MustParsePrefix("10.1.2.0/24"), Gateway: netip.MustParseAddr("10.1.2.1")}

var network = windows.Network{Name: "podnet", Type: windows.Transparent, Adapter: "Ethernet0", Subnets: []windows.Subnet{subnet}}

// node is an HNS with podnet's network.
func node() *hnstest.HNS {
	hns := hnstest.New()
	hns.AddNetwork(network)
	return hns
}

func newLinker(t *testing.T, hns windows.HNS, change ...func(*windows.Config)) *windows.Linker {
	t.Helper()
	cfg := windows.Config{HNS: hns, Network: network}
	for _, fn := range change {
		fn(&cfg)
	}
	l, err := windows.NewLinker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// request asks for the interface of sandbox n in a namespace of its own.
func request(hns *hnstest.HNS, n int) podnet.Request {
	return requestIn(hns.AddNamespace().String(), n)
}

func requestIn(netNS string, n int) podnet.Request {
	return podnet.Request{
		Key:       ifstore.Key{ContainerID: fmt.Sprint("sandbox", n), IfName: "eth0"},
		Pod:       ifstore.Pod{Namespace: "default", Name: fmt.Sprint("pod", n), UID: fmt.Sprint("uid", n)},
		NetNS:     netNS,
		IPAM:      "host-local",
		Addresses: []ifstore.Address{{Prefix: netip.MustParsePrefix(fmt.Sprintf("10.1.2.%d/24", 10+n)), Gateway: subnet.Gateway}},
	}
}

func names(hns *hnstest.HNS) []string {
	var list []string
	for _, e := range hns.Endpoints() {
		list = append(list, e.Name)
	}
	return list
}

// changing is an HNS that gives endpoints another address than they were asked for.
type changing struct{ *hnstest.HNS }

func (c *changing) CreateEndpoint(ctx context.Context, e windows.Endpoint) (windows.Endpoint, error) {
	e, err := c.HNS.CreateEndpoint(ctx, e)
	e.Addresses = []netip.Prefix{netip.MustParsePrefix("10.1.2.99/24")}
	return e, err
}

// guid reads what a test itself made; t may be nil.
func guid(t *testing.T, s string) windows.GUID {
	g, err := windows.ParseGUID(s)
	if err != nil && t != nil {
		t.Fatal(err)
	}
	return g
}
