package masquerade

import (
	"context"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	goleak.VerifyTestMain(m)
}

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestAfter(t *testing.T) {
	for in, want := range map[string]string{
		"10.1.0.0/24": "10.1.1.0", "10.1.0.128/25": "10.1.1.0", "10.1.0.7/32": "10.1.0.8", "255.0.0.0/8": "invalid IP",
		"fd00::/64": "fd00:0:0:1::", "ff00::/8": "invalid IP",
	} {
		if got := after(netip.MustParsePrefix(in)).String(); got != want {
			t.Errorf("after %s: %s, want %s", in, got, want)
		}
	}
}

func TestApplyAgainAndRemove(t *testing.T) {
	conf := Config{Own: prefixes("10.1.0.0/24", "fd00:1::/64"), Inside: prefixes("10.1.0.0/16", "10.1.0.0/24", "10.2.0.0/24", "fd00::/16"), Gateway: "gw0"}
	for range 3 {
		if err := Apply(conf); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := Present(); err != nil || !ok {
		t.Errorf("present: %v %v", ok, err)
	}
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	sets, err := conn.GetSets(&nftables.Table{Family: nftables.TableFamilyINet, Name: TableName})
	if err != nil || len(sets) != 4 {
		t.Errorf("%d sets, want own and inside of both families: %v", len(sets), err)
	}
	for range 2 {
		if err := Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := Present(); err != nil || ok {
		t.Errorf("present after Remove: %v %v", ok, err)
	}
}

// Packets of a Pod to the outside carry the node's address; those to Pods of
// other nodes keep theirs.
func TestTranslation(t *testing.T) {
	const pod, outside = "mqpod", "mqout"
	for _, ns := range []string{pod, outside} {
		path, err := nettest.NewNS(ns)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nettest.DeleteNS(path) })
	}
	cable(t, "gw0", "10.1.0.1/24", pod, "10.1.0.5/24", "10.1.0.1")
	cable(t, "uplink", "192.0.2.1/24", outside, "192.0.2.9/24", "192.0.2.1")
	addr(t, outside, "peer", "10.2.0.7/32")
	if err := netlink.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: net.IPv4(10, 2, 0, 0).To4(), Mask: net.CIDRMask(24, 32)}, Gw: net.IPv4(192, 0, 2, 9).To4()}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Apply(Config{Own: prefixes("10.1.0.0/24"), Inside: prefixes("10.1.0.0/24", "10.2.0.0/24"), Gateway: "gw0"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ to, seen string }{{"192.0.2.9", "192.0.2.1"}, {"10.2.0.7", "10.1.0.5"}} {
		if got := source(t, pod, outside, test.to); got != test.seen {
			t.Errorf("Pod to %s is seen as %s, want %s", test.to, got, test.seen)
		}
	}
}

// within runs fn on a thread of a namespace.
func within(t *testing.T, ns string, fn func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		h, err := netns.GetFromName(ns)
		if err == nil {
			defer h.Close()
			if err = netns.Set(h); err == nil {
				err = fn()
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func addr(t *testing.T, ns, link, cidr string) {
	t.Helper()
	within(t, ns, func() error {
		l, err := netlink.LinkByName(link)
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, a)
	})
}

// cable joins this namespace to ns by a veth pair whose far end is "peer".
func cable(t *testing.T, name, here, ns, there, gw string) {
	t.Helper()
	h, err := netns.GetFromName(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: name})
	veth.PeerName, veth.PeerNamespace = "peer", netlink.NsFd(int(h))
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(veth) })
	a, err := netlink.ParseAddr(here)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(veth, a); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		t.Fatal(err)
	}
	addr(t, ns, "peer", there)
	within(t, ns, func() error {
		l, err := netlink.LinkByName("peer")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(gw).To4()})
	})
}

// source tells by which address a connection from one namespace is seen in another.
func source(t *testing.T, from, at, to string) (seen string) {
	t.Helper()
	var l net.Listener
	within(t, at, func() (err error) {
		l, err = net.Listen("tcp4", to+":0")
		return err
	})
	defer l.Close()
	var conn net.Conn
	within(t, from, func() (err error) {
		// One address and one family: no other thread is asked.
		d := net.Dialer{Timeout: 20 * time.Second}
		conn, err = d.DialContext(context.Background(), "tcp4", l.Addr().String())
		return err
	})
	defer conn.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	host, _, err := net.SplitHostPort(peer.RemoteAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return host
}
