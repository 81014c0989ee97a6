package podflows_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mdlayher/packet"
)

func TestPacketsGoWhereTheyBelong(t *testing.T) {
	l := standardLab(t)
	m := func(name string) mac { return l.pod(name).mac }
	gw := l.gateway.mac
	for _, test := range []struct {
		name, from string
		frame      []byte
		want       []string
	}{
		{"Pod to Pod", "a", udpFrame(m("b"), m("a"), "10.10.0.10", "10.10.0.11", 1, 2), []string{"b"}},
		{"Pod to Pod, IPv6", "a", udpFrame(m("b"), m("a"), "fd10::10", "fd10::11", 1, 2), []string{"b"}},
		{"Pod to gateway", "a", udpFrame(gw, m("a"), "10.10.0.10", "10.10.0.1", 1, 2), []string{"gateway"}},
		{"Pod to gateway, IPv6", "a", udpFrame(gw, m("a"), "fd10::10", "fd10::1", 1, 2), []string{"gateway"}},
		{"Pod to the world", "a", udpFrame(gw, m("a"), "10.10.0.10", "8.8.8.8", 1, 2), []string{"gateway"}},
		{"Pod to the world, IPv6", "a", udpFrame(gw, m("a"), "fd10::10", "2001:db8::1", 1, 2), []string{"gateway"}},
		{"gateway to Pod", "gateway", udpFrame(m("a"), gw, "10.10.0.1", "10.10.0.10", 1, 2), []string{"a"}},
		{"world to Pod", "gateway", udpFrame(m("a"), gw, "8.8.8.8", "10.10.0.10", 1, 2), []string{"a"}},
		{"gateway to nobody", "gateway", udpFrame(stranger, gw, "10.10.0.1", "10.10.0.99", 1, 2), nil},
		{"gateway broadcast", "gateway", udpFrame(broadcast, gw, "10.10.0.1", "10.10.0.255", 1, 2), nil},
		{"gateway into a VLAN", "gateway", udpFrame(m("v1"), gw, "10.10.0.1", "10.10.0.21", 1, 2), nil},
		{"gateway with a tag", "gateway", tagged(udpFrame(m("v1"), gw, "10.10.0.1", "10.10.0.21", 1, 2), 0x8100, 10), nil},
		{"within a VLAN", "v1", udpFrame(m("v2"), m("v1"), "10.10.0.21", "10.10.0.22", 1, 2), []string{"v2"}},
		{"within a VLAN, IPv6", "v1", udpFrame(m("v2"), m("v1"), "fd10::21", "fd10::22", 1, 2), []string{"v2"}},
		{"between VLANs", "v1", udpFrame(m("w"), m("v1"), "10.10.0.21", "10.10.0.31", 1, 2), nil},
		{"VLAN to untagged", "v1", udpFrame(m("a"), m("v1"), "10.10.0.21", "10.10.0.10", 1, 2), nil},
		{"untagged to VLAN", "a", udpFrame(m("v1"), m("a"), "10.10.0.10", "10.10.0.21", 1, 2), nil},
		{"untagged to VLAN by the gateway", "a", udpFrame(gw, m("a"), "10.10.0.10", "10.10.0.21", 1, 2), []string{"gateway"}}, // the host has no way there
		{"VLAN to gateway", "v1", udpFrame(gw, m("v1"), "10.10.0.21", "10.10.0.1", 1, 2), nil},
		{"VLAN broadcast", "v1", udpFrame(broadcast, m("v1"), "10.10.0.21", "10.10.0.255", 1, 2), []string{"v2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for who, copy := range l.on(t).expect(test.from, test.frame, test.want...) {
				if !bytes.Equal(copy, test.frame) {
					t.Errorf("%s got it changed:\n%x, sent\n%x", who, copy, test.frame)
				}
			}
		})
	}
}

func TestRoutingBetweenLocalSubnets(t *testing.T) {
	l := standardLab(t)
	a, b, c, gw := l.pod("a").mac, l.pod("b").mac, l.pod("c").mac, l.gateway.mac
	frame := func(dst, src mac, from, to string, ttl uint8) []byte {
		typ, p := ipPacket(from, to, 17, ttl, udp(7, 8))
		return frameOf(dst, src, typ, p)
	}
	t.Run("IPv4", func(t *testing.T) {
		got := l.on(t).expect("a", frame(gw, a, "10.10.0.10", "10.10.1.12", 64), "c")
		if want := frame(c, gw, "10.10.0.10", "10.10.1.12", 63); !bytes.Equal(got["c"], want) {
			t.Errorf("got\n%x, want\n%x", got["c"], want)
		}
	})
	t.Run("IPv6", func(t *testing.T) {
		got := l.on(t).expect("a", frame(gw, a, "fd10::10", "fd10::11", 9), "b")
		if want := frame(b, gw, "fd10::10", "fd10::11", 8); !bytes.Equal(got["b"], want) {
			t.Errorf("got\n%x, want\n%x", got["b"], want)
		}
	})
	t.Run("TTL spent: the host says so", func(t *testing.T) {
		l := l.on(t)
		for _, ttl := range []uint8{0, 1} {
			l.expect("a", frame(gw, a, "10.10.0.10", "10.10.1.12", ttl), "gateway")
		}
		l.expect("a", frame(gw, a, "fd10::10", "fd10::11", 1), "gateway")
	})
	t.Run("not out of the port it came from", func(t *testing.T) {
		l.on(t).expect("a", frame(gw, a, "10.10.0.10", "10.10.0.10", 64))
	})
}

// A Service's connection from a to b comes to b by the gateway with a's address
// as source. Its reply must not go to a directly: a knows the Service's address only.
func TestRepliesGoBackByTheGateway(t *testing.T) {
	for _, family := range []struct{ name, a, b string }{{"IPv4", "10.10.0.10", "10.10.0.11"}, {"IPv6", "fd10::10", "fd10::11"}} {
		t.Run(family.name, func(t *testing.T) {
			l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24", "fd10::10/64"}}, podSpec{name: "b", addrs: []string{"10.10.0.11/24", "fd10::11/64"}})
			a, b, gw := l.pod("a").mac, l.pod("b").mac, l.gateway.mac
			l.expect("gateway", udpFrame(b, gw, family.a, family.b, 5000, 80), "b")
			reply := udpFrame(a, b, family.b, family.a, 80, 5000)
			got := l.expect("b", reply, "gateway")
			if want := udpFrame(gw, b, family.b, family.a, 80, 5000); !bytes.Equal(got["gateway"], want) {
				t.Errorf("the gateway got\n%x, want\n%x", got["gateway"], want)
			}
			// The second packet of the connection, and one that b begins itself.
			l.expect("gateway", udpFrame(b, gw, family.a, family.b, 5000, 80), "b")
			l.expect("b", reply, "gateway")
			l.expect("b", udpFrame(a, b, family.b, family.a, 81, 5000), "a")
			l.expect("a", udpFrame(b, a, family.a, family.b, 5000, 81), "b")

			if out := l.connections(); !strings.Contains(out, "zone=57344,mark=1") {
				t.Errorf("no marked connection in zone 57344:\n%s", out)
			}
		})
	}
}

// connections lists the Pods' connections; the kernel datapath's table is the host's as well.
func (l *lab) connections() string {
	l.t.Helper()
	var ours []string
	for line := range strings.Lines(l.must(l.sw.Appctl("dpctl/dump-conntrack")).(string)) {
		if strings.Contains(line, "zone=57344") {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "")
}

// DEL forgets connections: the next owner of the address must not inherit where they lead.
func TestUninstallForgetsConnections(t *testing.T) {
	l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24", "fd10::10/64"}}, podSpec{name: "b", addrs: []string{"10.10.0.11/24", "fd10::11/64"}})
	a, b, gw := l.pod("a"), l.pod("b").mac, l.gateway.mac
	for _, f := range [][2]string{{"10.10.0.10", "10.10.0.11"}, {"fd10::10", "fd10::11"}} {
		l.expect("gateway", udpFrame(a.mac, gw, f[1], f[0], 80, 5000), "a") // to a
		l.expect("a", udpFrame(b, a.mac, f[0], f[1], 6000, 80), "b")        // from a
		l.expect("gateway", udpFrame(b, gw, "192.0.2.1", "10.10.0.11", 9, 9), "b")
	}
	if before := l.connections(); !strings.Contains(before, "10.10.0.10") || !strings.Contains(before, "fd10::10") {
		t.Fatalf("nothing to forget:\n%s", before)
	}
	l.ok(l.flows.Uninstall(t.Context(), l.ifaces()[:1])[0])
	after := l.connections()
	if strings.Contains(after, "10.10.0.10,") || strings.Contains(after, "fd10::10,") {
		t.Errorf("still remembered:\n%s", after)
	}
	if !strings.Contains(after, "192.0.2.1") {
		t.Errorf("another Pod's connection went as well:\n%s", after)
	}
}

// A Pod that pinged and goes must not take ovs-vswitchd with it (flushedProtocols).
func TestUninstallAfterPings(t *testing.T) {
	l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24", "fd10::10/64"}}, podSpec{name: "b", addrs: []string{"10.10.0.11/24", "fd10::11/64"}})
	a, b := l.pod("a").mac, l.pod("b").mac
	for _, f := range []struct {
		from, to   string
		proto, typ uint8
	}{{"10.10.0.10", "10.10.0.11", 1, 8}, {"10.10.0.10", "10.10.0.11", 1, 13}, {"fd10::10", "fd10::11", 58, 128}} {
		typ, echo := ipPacket(f.from, f.to, f.proto, 64, slices.Concat([]byte{f.typ, 0, 0, 0, 0x12, 0x34, 0, 1}, make([]byte, 12), blankTag))
		// Not expected at b: whether its own stack answers does not matter here.
		if _, err := l.pod("a").conn.WriteTo(frameOf(b, a, typ, echo), &packet.Addr{HardwareAddr: b[:]}); err != nil {
			t.Fatal(err)
		}
		l.expect("a", udpFrame(b, a, f.from, f.to, 6000, uint16(f.typ)), "b") // the switch has seen what came before
	}
	if before := l.connections(); !strings.Contains(before, "icmpv6,orig=(src=fd10::10") {
		t.Fatalf("the ping is not tracked:\n%s", before)
	}
	for _, err := range l.flows.Uninstall(t.Context(), l.ifaces()) {
		l.ok(err)
	}
	if after := l.connections(); strings.Contains(after, "10.10.0.10") {
		t.Errorf("still remembered:\n%s", after)
	}
}

// Every chain of the flood must reach its ports, however they are numbered.
func TestFloodReachesEveryNumber(t *testing.T) {
	l := newLab(t, podSpec{name: "l1", vlan: 30, l2: true}, podSpec{name: "l2", vlan: 30, l2: true})
	l2 := l.pod("l2")
	frame := frameOf(broadcast, l.pod("l1").mac, 0x88b6, bytes.Repeat([]byte{1}, 46))
	for _, number := range []uint32{3, 15, 16, 17, 31, 255, 256, 4095, 4096, 30000, 0x7fff, 0x8000, 0xfeff} {
		moved := l2.iface
		l.vsctl("set", "interface", moved.Name, fmt.Sprintf("ofport_request=%d", number))
		moved.OFPort = l.ofportWhen(moved.Name, number)
		l.ok(l.flows.Replace(t.Context(), l2.iface, moved))
		l2.iface = moved
		l.settle()
		l.expect("l1", frame, "l2")
		l.ok(l.flows.CheckFlows(t.Context(), moved))
	}
	missing, stale, err := l.flows.Audit(t.Context(), l.ifaces())
	if missing != 0 || stale != 0 || err != nil {
		t.Errorf("audit after the moves: %d missing, %d stale, %v", missing, stale, err)
	}
}
