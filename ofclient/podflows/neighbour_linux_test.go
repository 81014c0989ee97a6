package podflows_test

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestNeighboursAreFoundByTheirOwnersAlone(t *testing.T) {
	l := standardLab(t)
	m := func(name string) mac { return l.pod(name).mac }
	for _, test := range []struct {
		name, from string
		frame      []byte
		want       []string
	}{
		{"ARP for a Pod", "a", arpRequest(m("a"), "10.10.0.10", "10.10.0.11").frame(), []string{"b"}},
		{"ARP for a Pod of the other subnet", "a", arpRequest(m("a"), "10.10.0.10", "10.10.1.12").frame(), []string{"c"}},
		{"ARP for the gateway", "a", arpRequest(m("a"), "10.10.0.10", "10.10.0.1").frame(), []string{"gateway"}},
		{"ARP by the gateway", "gateway", arpRequest(m("gateway"), "10.10.0.1", "10.10.0.10").frame(), []string{"a"}},
		{"ARP for a free address", "a", arpRequest(m("a"), "10.10.0.10", "10.10.0.99").frame(), nil},
		{"ARP by the gateway for a free address", "gateway", arpRequest(m("gateway"), "10.10.0.1", "10.10.0.99").frame(), nil},
		{"ARP into a VLAN", "a", arpRequest(m("a"), "10.10.0.10", "10.10.0.21").frame(), nil},
		{"ARP by the gateway into a VLAN", "gateway", arpRequest(m("gateway"), "10.10.0.1", "10.10.0.21").frame(), nil},
		{"ARP in a VLAN", "v1", arpRequest(m("v1"), "10.10.0.21", "10.10.0.22").frame(), []string{"v2"}},
		{"ARP between VLANs", "v1", arpRequest(m("v1"), "10.10.0.21", "10.10.0.31").frame(), []string{"v2"}}, // to the own VLAN
		{"ARP out of a VLAN for the gateway", "v1", arpRequest(m("v1"), "10.10.0.21", "10.10.0.1").frame(), []string{"v2"}},
		{"ARP between layer-2 interfaces", "l1", arpRequest(m("l1"), "192.168.7.1", "192.168.7.2").frame(), []string{"l2"}},
		{"gratuitous ARP", "a", arpRequest(m("a"), "10.10.0.10", "10.10.0.10").frame(), []string{"b", "c", "gateway"}},
		{"gratuitous ARP reply", "a", arpPacket{broadcast, m("a"), 2, m("a"), ip("10.10.0.10"), broadcast, ip("10.10.0.10")}.frame(), []string{"b", "c", "gateway"}},
		{"gratuitous ARP in a VLAN", "v1", arpRequest(m("v1"), "10.10.0.21", "10.10.0.21").frame(), []string{"v2"}},
		{"gratuitous ARP by the gateway", "gateway", arpRequest(m("gateway"), "10.10.0.1", "10.10.0.1").frame(), []string{"a", "b", "c"}},
		{"ARP probe", "a", arpRequest(m("a"), "0.0.0.0", "10.10.0.10").frame(), []string{"b", "c", "gateway"}},
		{"ARP reply to a Pod", "a", arpPacket{m("b"), m("a"), 2, m("a"), ip("10.10.0.10"), m("b"), ip("10.10.0.11")}.frame(), []string{"b"}},
		{"ARP reply to the gateway", "a", arpPacket{m("gateway"), m("a"), 2, m("a"), ip("10.10.0.10"), m("gateway"), ip("10.10.0.1")}.frame(), []string{"gateway"}},
		{"ARP reply into a VLAN", "a", arpPacket{m("v1"), m("a"), 2, m("a"), ip("10.10.0.10"), m("v1"), ip("10.10.0.21")}.frame(), nil},

		{"NS for a Pod", "a", solicit(m("a"), "fd10::10", "fd10::11").frame(), []string{"b"}},
		{"NS for a Pod's link-local", "a", solicit(m("a"), linkLocalOf(m("a")), linkLocalOf(m("b"))).frame(), []string{"b"}},
		{"NS for the gateway", "a", solicit(m("a"), "fd10::10", "fd10::1").frame(), []string{"gateway"}},
		{"NS for the gateway's link-local", "a", solicit(m("a"), "fd10::10", linkLocalOf(m("gateway"))).frame(), []string{"gateway"}},
		{"NS by the gateway", "gateway", solicit(m("gateway"), "fd10::1", "fd10::10").frame(), []string{"a"}},
		{"NS for a free address", "a", solicit(m("a"), "fd10::10", "fd10::99").frame(), nil},
		{"NS for an unknown link-local", "a", solicit(m("a"), "fd10::10", "fe80::99").frame(), nil},
		{"NS into a VLAN", "a", solicit(m("a"), "fd10::10", "fd10::21").frame(), nil},
		{"NS in a VLAN", "v1", solicit(m("v1"), "fd10::21", "fd10::22").frame(), []string{"v2"}},
		{"NS between layer-2 interfaces", "l1", solicit(m("l1"), linkLocalOf(m("l1")), "fd77::2").frame(), []string{"l2"}},
		{"duplicate address detection", "a", ndPacket{src: m("a"), typ: 135, from: "::", target: "fd10::10"}.frame(), []string{"b", "c", "gateway"}},
		{"duplicate address detection, link-local", "a", ndPacket{src: m("a"), typ: 135, from: "::", target: linkLocalOf(m("a"))}.frame(), []string{"b", "c", "gateway"}},
		{"duplicate address detection, drawn link-local", "a", ndPacket{src: m("a"), typ: 135, from: "::", target: "fe80::77"}.frame(), []string{"b", "c", "gateway"}},
		{"unsolicited NA", "a", advertise(m("a"), "fd10::10", "fd10::10").frame(), []string{"b", "c", "gateway"}},
		{"unsolicited NA by the gateway", "gateway", advertise(m("gateway"), "fd10::1", "fd10::1").frame(), []string{"a", "b", "c"}},
		{"unsolicited NA in a VLAN", "v1", advertise(m("v1"), "fd10::21", "fd10::21").frame(), []string{"v2"}},
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

// Pods whose subnet is wider than the node ask for what lies behind the gateway.
func TestTheSwitchAnswersForWhatLiesBehindTheGateway(t *testing.T) {
	l := standardLab(t)
	a, gw := l.pod("a").mac, l.gateway.mac
	t.Run("ARP", func(t *testing.T) {
		frame := arpRequest(a, "10.10.0.10", "10.99.1.1").frame()
		got := l.on(t).expect("a", frame, "a")
		want := arpPacket{a, gw, 2, gw, ip("10.99.1.1"), a, ip("10.10.0.10")}
		if answer := parseARP(got["a"]); answer != want {
			t.Errorf("answer %+v, want %+v", answer, want)
		}
	})
	unasked := solicit(a, "fd10::10", "fd99::5")
	unasked.eth, unasked.to, unasked.option = gw, "fd99::5", 0
	for name, ask := range map[string]ndPacket{"ND": solicit(a, "fd10::10", "fd99::5"), "ND, unicast probe without option": unasked} {
		t.Run(name, func(t *testing.T) {
			if *datapath == "system" { // the kernel cannot make the answer
				l.on(t).expect("a", ask.frame(), "gateway")
				return
			}
			want := ndPacket{eth: a, src: gw, typ: 136, from: "fd99::5", to: "fd10::10", target: "fd99::5", flags: 3 << 29}
			if ask.option != 0 {
				want.option, want.lladdr = 2, gw
			}
			got := l.on(t).expect("a", ask.frame(), "a")
			if !bytes.Equal(got["a"], want.frame()) {
				t.Errorf("answer\n%x, want\n%x", got["a"], want.frame())
			}
		})
	}
	t.Run("never in a VLAN, to the gateway, or to probes", func(t *testing.T) {
		l := l.on(t)
		v := l.pod("v1").mac
		l.expect("v1", arpRequest(v, "10.10.0.21", "10.99.1.1").frame(), "v2")
		l.expect("v1", solicit(v, "fd10::21", "fd99::5").frame(), "v2")
		l.expect("gateway", arpRequest(gw, "10.10.0.1", "10.99.1.1").frame())
		l.expect("gateway", solicit(gw, "fd10::1", "fd99::5").frame())
		l.expect("a", arpRequest(a, "0.0.0.0", "10.99.1.1").frame())
		l.expect("a", ndPacket{src: a, typ: 135, from: "::", target: "fd99::5"}.frame())
	})
}

func TestLayer2InterfacesShareTheirVLANOnly(t *testing.T) {
	l := newLab(t,
		podSpec{name: "a", addrs: []string{"10.10.0.10/24", "fd10::10/64"}},
		podSpec{name: "u1", l2: true}, podSpec{name: "u2", l2: true},
		podSpec{name: "l1", vlan: 30, l2: true}, podSpec{name: "l2", vlan: 30, l2: true},
		podSpec{name: "p", addrs: []string{"10.10.0.33/24", "fd10::33/64"}, vlan: 30},
		podSpec{name: "m1", vlan: 31, l2: true})
	m := func(name string) mac { return l.pod(name).mac }
	payload := bytes.Repeat([]byte{0x5a}, 46)
	for _, test := range []struct {
		name, from string
		frame      []byte
		want       []string
	}{
		{"unicast", "l1", frameOf(m("l2"), m("l1"), 0x88b6, payload), []string{"l2"}},
		{"unicast, other VLAN", "l1", frameOf(m("m1"), m("l1"), 0x88b6, payload), nil},
		{"unicast to a Pod with addresses", "l1", udpFrame(m("p"), m("l1"), "192.168.7.1", "10.10.0.33", 1, 2), []string{"p"}},
		{"broadcast", "l1", frameOf(broadcast, m("l1"), 0x88b6, payload), []string{"l2", "p"}},
		{"multicast", "p", udpFrame(mac{1, 0, 0x5e, 0, 0, 0xfb}, m("p"), "10.10.0.33", "224.0.0.251", 5353, 5353), []string{"l1", "l2"}},
		{"any address that nobody was given", "l1", udpFrame(m("l2"), m("l1"), "192.168.7.1", "192.168.7.2", 1, 2), []string{"l2"}},
		{"ARP", "l1", arpRequest(m("l1"), "192.168.7.1", "192.168.7.2").frame(), []string{"l2", "p"}},
		{"ARP for a Pod with addresses", "l1", arpRequest(m("l1"), "192.168.7.1", "10.10.0.33").frame(), []string{"p"}},
		{"ARP by a Pod with addresses", "p", arpRequest(m("p"), "10.10.0.33", "192.168.7.2").frame(), []string{"l1", "l2"}},
		{"untagged unicast", "u1", frameOf(m("u2"), m("u1"), 0x88b6, payload), []string{"u2"}},
		{"untagged broadcast", "u1", frameOf(broadcast, m("u1"), 0x88b6, payload), []string{"u2", "a"}},
		{"untagged to the gateway", "u1", udpFrame(m("gateway"), m("u1"), "192.168.7.1", "10.10.0.1", 1, 2), nil},
		{"untagged ARP for the gateway", "u1", arpRequest(m("u1"), "192.168.7.1", "10.10.0.1").frame(), []string{"u2", "a"}},

		{"other MAC", "l1", frameOf(m("l2"), stranger, 0x88b6, payload), nil},
		{"other MAC in ARP", "l1", arpPacket{broadcast, m("l1"), 1, stranger, ip("192.168.7.1"), mac{}, ip("192.168.7.2")}.frame(), nil},
		{"a Pod's IPv4 address", "l1", udpFrame(m("l2"), m("l1"), "10.10.0.10", "192.168.7.2", 1, 2), nil},
		{"a Pod's IPv6 address", "l1", udpFrame(m("l2"), m("l1"), "fd10::10", "fd77::1", 1, 2), nil},
		{"a Pod's address in ARP", "u1", arpRequest(m("u1"), "10.10.0.10", "10.10.0.11").frame(), nil},
		{"a Pod's address in an ARP probe", "u1", arpRequest(m("u1"), "0.0.0.0", "10.10.0.10").frame(), nil},
		{"a Pod's address in NA", "u1", advertise(m("u1"), "fe80::9", "fd10::10").frame(), nil},
		{"a Pod's address in duplicate address detection", "u1", ndPacket{src: m("u1"), typ: 135, from: "::", target: "fd10::10"}.frame(), nil},
		{"a Pod's link-local in NA", "u1", advertise(m("u1"), "fe80::9", linkLocalOf(m("a"))).frame(), nil},
		{"the gateway's address in ARP", "u1", arpRequest(m("u1"), "10.10.0.1", "10.10.0.10").frame(), nil},
		{"multicast source", "l1", udpFrame(m("l2"), m("l1"), "224.0.0.9", "192.168.7.2", 1, 2), nil},
		{"own link-local in NA", "u1", advertise(m("u1"), linkLocalOf(m("u1")), linkLocalOf(m("u1"))).frame(), []string{"u2", "a"}},
		{"own link-local in duplicate address detection", "l1", ndPacket{src: m("l1"), typ: 135, from: "::", target: linkLocalOf(m("l1"))}.frame(), []string{"l2", "p"}},
		{"own tag", "l1", tagged(frameOf(broadcast, m("l1"), 0x88b6, payload), 0x8100, 31), nil},
		{"DHCP server", "l1", udpFrame(broadcast, m("l1"), "192.168.7.1", "255.255.255.255", 67, 68), nil},
		{"DHCP client", "l1", udpFrame(broadcast, m("l1"), "0.0.0.0", "255.255.255.255", 68, 67), []string{"l2", "p"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for who, copy := range l.on(t).expect(test.from, test.frame, test.want...) {
				if binary.BigEndian.Uint16(copy[12:]) == 0x8100 {
					t.Errorf("%s got it with the tag", who)
				}
			}
		})
	}
}
