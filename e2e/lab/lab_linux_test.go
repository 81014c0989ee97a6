package lab

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	os.Exit(m.Run())
}

// cable makes two namespaces with a veth pair between them and no switch at all.
func cable(t *testing.T, pairs ...[2]string) (a, b []Endpoint) {
	t.Helper()
	paths := make([]string, 2)
	handles := make([]*netlink.Handle, 2)
	fds := make([]netns.NsHandle, 2)
	for i, name := range []string{"left", "right"} {
		var err error
		if paths[i], err = nettest.NewNS(name); err != nil {
			t.Fatal(err)
		}
		if fds[i], err = netns.GetFromPath(paths[i]); err != nil {
			t.Fatal(err)
		}
		if handles[i], err = netlink.NewHandleAt(fds[i], unix.NETLINK_ROUTE); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			handles[i].Close()
			if err := errors.Join(fds[i].Close(), nettest.DeleteNS(paths[i])); err != nil {
				t.Error(err)
			}
		})
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Namespace = "eth0", 1500, netlink.NsFd(fds[0])
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(fds[1])}); err != nil {
		t.Fatal(err)
	}
	for i, h := range handles {
		link, err := h.LinkByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range pairs {
			prefix := netip.MustParsePrefix(pair[i])
			addr, err := netlink.ParseAddr(pair[i])
			if err != nil {
				t.Fatal(err)
			}
			addr.Flags = 0x02 // IFA_F_NODAD
			if err := h.AddrAdd(link, addr); err != nil {
				t.Fatal(err)
			}
			e := Endpoint{NS: paths[i], Addr: prefix.Addr()}
			if i == 0 {
				a = append(a, e)
			} else {
				b = append(b, e)
			}
		}
		if err := h.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func TestInstruments(t *testing.T) {
	a, b := cable(t, [2]string{"10.0.0.1/24", "10.0.0.2/24"}, [2]string{"fd00::1/64", "fd00::2/64"})
	for i := range a {
		from, to := a[i], b[i]
		if _, err := Ping(from.NS, from.Addr, to.Addr, 56, 2*time.Second); err != nil {
			t.Errorf("ping: %v", err)
		}
		if _, err := Ping(from.NS, from.Addr, to.Addr, 1500, time.Second); err == nil || errors.Is(err, ErrNoReply) {
			t.Errorf("ping above the MTU: %v, want an error from the sender", err)
		}
		if _, err := Ping(from.NS, from.Addr, to.Addr.Next(), 56, 100*time.Millisecond); !errors.Is(err, ErrNoReply) {
			t.Errorf("ping of nobody: %v, want ErrNoReply", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		sent, err := SendTCP(ctx, from, to, 1<<20)
		if err != nil || sent.Bytes != 1<<20 {
			t.Errorf("TCP: %+v %v", sent, err)
		}
		echo, err := UDPEcho(to)
		if err != nil {
			t.Fatal(err)
		}
		defer echo.Close()
		if err := AskUDP(ctx, from, echo.Addr()); err != nil {
			t.Errorf("UDP: %v", err)
		}
	}
}

func TestStreamTCPEndsWithItsContext(t *testing.T) {
	a, b := cable(t, [2]string{"10.0.0.1/24", "10.0.0.2/24"})
	const every = 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	sent, err := StreamTCP(ctx, a[0], b[0], 1000, every)
	if err != nil || sent.Bytes < 5000 || sent.Bytes > 1000*int64(sent.Took/every+1) {
		t.Errorf("%+v, error %v; want 1000 bytes each %s", sent, err, every)
	}
}

func TestPingStreamCountsLoss(t *testing.T) {
	a, b := cable(t, [2]string{"10.0.0.1/24", "10.0.0.2/24"})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	report, err := PingStream(ctx, a[0].NS, a[0].Addr, b[0].Addr, 10*time.Millisecond)
	if err != nil || report.Sent == 0 || report.Lost != 0 {
		t.Errorf("report %+v, error %v; want no loss", report, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	report, err = PingStream(ctx, a[0].NS, a[0].Addr, b[0].Addr.Next(), 10*time.Millisecond)
	if err != nil || report.Sent == 0 || report.Lost != report.Sent || report.LongestGap < 300*time.Millisecond {
		t.Errorf("report %+v, error %v; want all lost", report, err)
	}
}

func TestRawFramesArriveAsBuilt(t *testing.T) {
	a, b := cable(t, [2]string{"10.0.0.1/24", "10.0.0.2/24"}, [2]string{"fd00::1/64", "fd00::2/64"})
	left, err := OpenWire(a[0].NS, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	right, err := OpenWire(b[0].NS, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer right.Close()
	for i, etherType := range []uint16{EthIPv4, EthIPv6} {
		src, dst := netip.AddrPortFrom(a[i].Addr, 7), netip.AddrPortFrom(b[i].Addr, 9)
		if err := left.Send(Ethernet(Broadcast(), MAC{2, 0, 0, 0, 0, 1}, etherType, UDP(src, dst, []byte("hello")))); err != nil {
			t.Fatal(err)
		}
		frame, err := right.Wait(time.Now().Add(2*time.Second), func(f []byte) bool {
			s, d, ok := UDPOf(f)
			return ok && s == src && d == dst
		})
		if err != nil || !strings.HasSuffix(string(frame), "hello") {
			t.Errorf("frame % x: %v", frame, err)
		}
	}
	// The kernel itself accepts the datagram only with right checksums.
	echo, err := UDPEcho(b[0])
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	src := netip.AddrPortFrom(a[0].Addr, 4242)
	if err := left.Send(Ethernet(Broadcast(), MAC{2, 0, 0, 0, 0, 1}, EthIPv4, UDP(src, echo.Addr(), []byte("echo me")))); err != nil {
		t.Fatal(err)
	}
	if _, err := left.Wait(time.Now().Add(2*time.Second), func(f []byte) bool {
		_, d, ok := UDPOf(f)
		return ok && d == src
	}); err != nil {
		t.Errorf("no echo of a hand-made datagram: %v", err)
	}
}

func TestListingsDiffer(t *testing.T) {
	before, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	path, err := nettest.NewNS("extra")
	if err != nil {
		t.Fatal(err)
	}
	after, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	if diff := after.Diff(before); !strings.Contains(diff, "new network namespace: extra") || !strings.Contains(diff, "new mount: "+path) {
		t.Errorf("diff %q", diff)
	}
	if err := nettest.DeleteNS(path); err != nil {
		t.Fatal(err)
	}
	if after, err = Machine(); err != nil || after.Diff(before) != "" {
		t.Errorf("after removal: %v %q", err, after.Diff(before))
	}
}

func TestProcessesAreFoundByTheirEnvironment(t *testing.T) {
	const variable = "PODNET_LAB_TEST=here"
	cmd := exec.Command("cat")
	cmd.Env = append(os.Environ(), variable)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if found, err := Processes(variable); err != nil || len(found) != 1 || found[0] != "cat" {
		t.Errorf("found %v %v, want cat", found, err)
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if found, err := Processes(variable); err != nil || len(found) != 0 {
		t.Errorf("found %v %v after its end, want none", found, err)
	}
}
