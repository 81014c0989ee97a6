package linux

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	nettest.Main()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var nsCount atomic.Int64

// newNS makes a namespace that ends with the test.
func newNS(tb testing.TB) string {
	tb.Helper()
	path, err := nettest.NewNS(fmt.Sprintf("ns%d", nsCount.Add(1)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := nettest.DeleteNS(path); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
			tb.Error(err)
		}
	})
	return path
}

func newLinker(tb testing.TB, cfg Config) *Linker {
	tb.Helper()
	l, err := NewLinker(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// within runs fn with a netlink handle of the namespace at path.
func within(tb testing.TB, path string, fn func(h *netlink.Handle)) {
	tb.Helper()
	ns, err := netns.GetFromPath(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		tb.Fatal(err)
	}
	defer h.Close()
	fn(h)
}

func addr(prefix, gateway string) ifstore.Address {
	a := ifstore.Address{Prefix: netip.MustParsePrefix(prefix)}
	if gateway != "" {
		a.Gateway = netip.MustParseAddr(gateway)
	}
	return a
}

func request4(id, path string) podnet.Request {
	return podnet.Request{
		Key: ifstore.Key{ContainerID: id, IfName: "eth0"}, NetNS: path,
		Addresses: []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1")},
	}
}

// record is what the core stores after Link.
func record(req podnet.Request, link podnet.Link) ifstore.Interface {
	return ifstore.Interface{
		Key: req.Key, Pod: req.Pod, Name: link.Name, MAC: link.MAC, MTU: link.MTU, NetNS: req.NetNS,
		Addresses: req.Addresses, Routes: req.Routes, Extra: link.Extra,
	}
}

// link makes an interface and removes it with the test.
func link(tb testing.TB, l *Linker, req podnet.Request) ifstore.Interface {
	tb.Helper()
	got, err := l.Link(context.Background(), req)
	if err != nil {
		tb.Fatal(err)
	}
	iface := record(req, got)
	tb.Cleanup(func() {
		if err := l.Unlink(context.Background(), iface); err != nil {
			tb.Error(err)
		}
	})
	return iface
}

// hostLinks are the names of the host's links but lo and those of Open vSwitch,
// whose taps go some time after their owner was killed.
func hostLinks(tb testing.TB) []string {
	tb.Helper()
	var names []string
	for range 100 {
		links, err := netlink.LinkList()
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, l := range links {
			if name := l.Attrs().Name; name != "lo" && name != "br0" && !strings.HasPrefix(name, "ovs-") {
				names = append(names, name)
			}
		}
		return names
	}
	tb.Fatal("the list of links never settled")
	return nil
}
