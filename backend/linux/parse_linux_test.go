package linux

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A link message that is cut anywhere, or has any byte changed, is read as far
// as it goes and never taken on trust.
func TestParseLinkDamaged(t *testing.T) {
	iface := link(t, newLinker(t, Config{}), request4("c1", newNS(t)))
	c, err := dialRTNL()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	replies, err := c.do(getLinkByName(iface.Name))
	if err != nil || len(replies[0].data) != 1 {
		t.Fatal(replies, err)
	}
	whole := replies[0].data[0]
	if l, err := parseLink(whole); err != nil || l.name != iface.Name || l.kind != "veth" || l.mtu != iface.MTU || l.alias != alias(iface.Key) {
		t.Fatalf("%+v, %v", l, err)
	}
	for n := range whole {
		l, err := parseLink(slices.Clone(whole[:n]))
		if n < unix.SizeofIfInfomsg && err == nil {
			t.Errorf("%d bytes: %+v and no error", n, l)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100000 {
		b := slices.Clone(whole)
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		_, _ = parseLink(b)
	}
}

func TestVerdictDamaged(t *testing.T) {
	ack := []byte{0xef, 0xff, 0xff, 0xff} // -EEXIST, little or big endian: an error either way
	header := make([]byte, unix.NLMSG_HDRLEN)
	text := append([]byte{12, 0, 1, 0}, "in use\x00\x00"...)
	whole := slices.Concat(ack, header, text)
	for n := range len(whole) + 1 {
		for _, flags := range []uint16{0, unix.NLM_F_ACK_TLVS} {
			m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.NLMSG_ERROR, Flags: flags}, Data: whole[:n]}
			if verdict(m) == nil {
				t.Errorf("%d bytes, flags %#x: no error", n, flags)
			}
		}
	}
	m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.NLMSG_ERROR, Flags: unix.NLM_F_ACK_TLVS}, Data: whole}
	wantText(t, verdict(m), "file exists", "in use")
}

func TestBroadcastAddress(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3/24": "10.1.2.255", "10.1.2.3/30": "10.1.2.3", "10.1.2.3/9": "10.127.255.255", "10.1.2.3/0": "255.255.255.255", "10.1.2.3/17": "10.1.127.255"} {
		if got := lastAddr(netip.MustParsePrefix(in)); got.String() != want {
			t.Errorf("%s: %v, want %s", in, got, want)
		}
	}
}
