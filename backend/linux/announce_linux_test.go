package linux

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/arp"
	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// capture sees every frame of every interface of one namespace.
type capture struct{ fd int }

type frame struct {
	ifindex  int
	outgoing bool
	data     []byte
}

// newCapture opens a capture in the namespace of the calling thread.
func newCapture() (*capture, error) {
	proto := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(proto))
	if err != nil {
		return nil, err
	}
	return &capture{fd}, errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}))
}

// captureAt opens a capture that ends with the test; path "" is the host.
func captureAt(t *testing.T, path string) *capture {
	t.Helper()
	var c *capture
	open := func() (err error) { c, err = newCapture(); return err }
	if path != "" {
		inside(t, path, open)
	} else if err := open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(c.fd) })
	return c
}

func (c *capture) next(t *testing.T) frame {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		n, from, err := unix.Recvfrom(c.fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatalf("capture: no frame came: %v", err)
		}
		sa := from.(*unix.SockaddrLinklayer)
		return frame{ifindex: sa.Ifindex, outgoing: sa.Pkttype == unix.PACKET_OUTGOING, data: buf[:n]}
	}
}

// until collects announcements, in words, until the marker shows up.
func (c *capture) until(t *testing.T, marker []byte) (seen []string, frames []frame) {
	t.Helper()
	for {
		f := c.next(t)
		if bytes.Equal(f.data, marker) {
			return seen, frames
		}
		if s := describe(f.data); s != "" {
			seen, frames = append(seen, s), append(frames, f)
		}
	}
}

// describe decodes ARP and neighbour advertisements with other code than ours made them.
func describe(b []byte) string {
	head := fmt.Sprintf("%s>%s ", hex.EncodeToString(b[6:12]), hex.EncodeToString(b[:6]))
	switch binary.BigEndian.Uint16(b[12:]) {
	case unix.ETH_P_ARP:
		var p arp.Packet
		if err := p.UnmarshalBinary(b[14:]); err != nil {
			return head + err.Error()
		}
		return head + fmt.Sprintf("arp op %d %v %v > %v %v", p.Operation, p.SenderHardwareAddr, p.SenderIP, p.TargetHardwareAddr, p.TargetIP)
	case unix.ETH_P_IPV6:
		if b[20] != 58 || b[54] != 136 {
			return ""
		}
		src, dst := netip.AddrFrom16([16]byte(b[22:38])), netip.AddrFrom16([16]byte(b[38:54]))
		body := append([]byte{}, b[54:]...)
		sum := binary.BigEndian.Uint16(body[2:])
		m, err := ndp.ParseMessage(body)
		if err != nil {
			return head + err.Error()
		}
		na := m.(*ndp.NeighborAdvertisement)
		return head + fmt.Sprintf("na %v > %v hops %d len %d router %v solicited %v override %v target %v tll %v sum %v",
			src, dst, b[21], int(binary.BigEndian.Uint16(b[18:]))-len(body), na.Router, na.Solicited, na.Override, na.TargetAddress,
			na.Options[0].(*ndp.LinkLayerAddress).Addr, sum == checksum(src, dst, body))
	}
	return ""
}

// checksum is ICMPv6's (RFC 4443, section 2.3) over body with a zero checksum field.
func checksum(src, dst netip.Addr, body []byte) uint16 {
	b := append(append(append([]byte{}, src.AsSlice()...), dst.AsSlice()...), 0, 0, 0, byte(len(body)), 0, 0, 0, 58)
	b = append(append(append(b, body[:2]...), 0, 0), body[4:]...)
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// sendMarker sends a frame that ends a capture from inside a container.
func sendMarker(t *testing.T, path string, mac ifstore.MAC) []byte {
	t.Helper()
	marker := append(ethernetHeader(broadcast, mac, 0x88b5), "the end of this test's capture, 60 bytes at least ..........."...)
	inside(t, path, func() error { return send("eth0", marker) })
	return marker
}

func send(ifName string, b []byte) error {
	c, err := dialRTNL()
	if err != nil {
		return err
	}
	defer c.close()
	l, err := lookUp(c, ifName)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: l.index})
}

func TestAnnounce(t *testing.T) {
	l, path := newLinker(t, Config{}), newNS(t)
	// Somewhere for a leak to go.
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "leak0"}, PeerName: "leak1"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leak0", "leak1"} {
		h, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(h); err != nil {
			t.Fatal(err)
		}
		defer netlink.LinkDel(h)
	}
	c := captureAt(t, "")
	req := podnet.Request{Key: ifstore.Key{ContainerID: "c1", IfName: "eth0"}, NetNS: path, MAC: ifstore.MAC{2, 0, 0, 0, 0, 5},
		Addresses: []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1"), addr("fd00::3/64", "fd00::1"), addr("10.9.0.3/24", "")}}
	iface := link(t, l, req)
	if got, _ := c.until(t, sendMarker(t, path, iface.MAC)); len(got) > 0 {
		t.Errorf("before Announce: %q", got)
	}
	if err := l.Announce(context.Background(), iface); err != nil {
		t.Fatal(err)
	}
	got, frames := c.until(t, sendMarker(t, path, iface.MAC))
	once := []string{
		"020000000005>ffffffffffff arp op 1 02:00:00:00:00:05 10.1.2.3 > 00:00:00:00:00:00 10.1.2.3",
		"020000000005>333300000001 na fd00::3 > ff02::1 hops 255 len 0 router false solicited false override true target fd00::3 tll 02:00:00:00:00:05 sum true",
		"020000000005>ffffffffffff arp op 1 02:00:00:00:00:05 10.9.0.3 > 00:00:00:00:00:00 10.9.0.3",
	}
	if diff := cmp.Diff(append(once, once...), got); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
	host, err := netlink.LinkByName(iface.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if f.ifindex != host.Attrs().Index || f.outgoing {
			t.Errorf("leaked to interface %d (outgoing %v): %s", f.ifindex, f.outgoing, describe(f.data))
		}
	}
}

// Announcements of many containers at once, with goroutines moving between
// threads: each frame comes out of its own cable and nowhere else (NL-3).
func TestAnnounceNeverLeaks(t *testing.T) {
	const n = 16
	l := newLinker(t, Config{})
	owner := map[string]int{} // source MAC: index of the host's end
	ifaces := make([]ifstore.Interface, n)
	for i := range ifaces {
		req := request4(fmt.Sprint("c", i), newNS(t))
		req.Addresses = append(req.Addresses, addr("fd00::3/64", ""))
		ifaces[i] = link(t, l, req)
		h, err := netlink.LinkByName(ifaces[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		owner[string(ifaces[i].MAC[:])] = h.Attrs().Index
	}
	c := captureAt(t, "")
	var group sync.WaitGroup
	for _, iface := range ifaces {
		group.Go(func() {
			for range 10 {
				if err := l.Announce(context.Background(), iface); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	_, frames := c.until(t, sendMarker(t, ifaces[0].NetNS, ifaces[0].MAC))
	if len(frames) != n*10*2*2 {
		t.Errorf("%d frames, want %d", len(frames), n*10*2*2)
	}
	for _, f := range frames {
		if f.outgoing || owner[string(f.data[6:12])] != f.ifindex {
			t.Errorf("leaked to interface %d (outgoing %v): %s", f.ifindex, f.outgoing, describe(f.data))
		}
	}
}

func TestAnnounceNothing(t *testing.T) {
	l, path := newLinker(t, Config{}), newNS(t)
	req := request4("c1", path)
	req.NoIPAM, req.Addresses = true, nil
	iface := link(t, l, req)
	if err := l.Announce(context.Background(), iface); err != nil {
		t.Errorf("no addresses: %v", err)
	}
	iface.Addresses, iface.NetNS = []ifstore.Address{addr("10.1.2.3/24", "")}, "/proc/self/ns/net"
	wantText(t, l.Announce(context.Background(), iface), "c1/eth0", "host's own")
	iface.NetNS = "/run/netns/nowhere"
	wantText(t, l.Announce(context.Background(), iface), "c1/eth0", "/run/netns/nowhere")
}
