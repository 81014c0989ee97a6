package podflows_test

import (
	"slices"
	"strings"
	"testing"
)

func standardLab(t *testing.T) *lab {
	return newLab(t,
		podSpec{name: "a", addrs: []string{"10.10.0.10/24", "fd10::10/64"}},
		podSpec{name: "b", addrs: []string{"10.10.0.11/24", "fd10::11/64"}},
		podSpec{name: "c", addrs: []string{"10.10.1.12/24"}}, // the node's other subnet
		podSpec{name: "v1", addrs: []string{"10.10.0.21/24", "fd10::21/64"}, vlan: 10},
		podSpec{name: "v2", addrs: []string{"10.10.0.22/24", "fd10::22/64"}, vlan: 10},
		podSpec{name: "w", addrs: []string{"10.10.0.31/24"}, vlan: 20},
		podSpec{name: "l1", addrs: []string{"192.168.7.1/24"}, vlan: 30, l2: true},
		podSpec{name: "l2", addrs: []string{"192.168.7.2/24"}, vlan: 30, l2: true},
	)
}

func TestAPodSpeaksOnlyAsItself(t *testing.T) {
	l := standardLab(t)
	a, b, gw := l.pod("a").mac, l.pod("b").mac, l.gateway.mac
	group := mac{0x0b, 1, 1, 1, 1, 1}
	arp := func(change func(*arpPacket)) []byte {
		p := arpRequest(a, "10.10.0.10", "10.10.0.11")
		change(&p)
		return p.frame()
	}
	ns := func(change func(*ndPacket)) []byte {
		p := solicit(a, "fd10::10", "fd10::11")
		change(&p)
		return p.frame()
	}
	na := func(change func(*ndPacket)) []byte {
		p := advertise(a, "fd10::10", "fd10::10")
		p.eth, p.to = b, "fd10::11"
		change(&p)
		return p.frame()
	}
	// Not to b's address, or b's kernel would answer.
	icmp6 := func(typ uint8, src string) []byte {
		et, body := ipPacket(src, "fd10::99", 58, 255, slices.Concat([]byte{typ, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 32), blankTag))
		return frameOf(b, a, et, body)
	}
	good := udpFrame(b, a, "10.10.0.10", "10.10.0.11", 1000, 2000)
	good6 := udpFrame(b, a, "fd10::10", "fd10::11", 1000, 2000)
	for _, test := range []struct {
		name  string
		frame []byte
		want  []string
	}{
		{"IPv4", good, []string{"b"}},
		{"IPv6", good6, []string{"b"}},
		{"ARP request", arp(func(*arpPacket) {}), []string{"b"}},
		{"ARP reply", arp(func(p *arpPacket) { p.op, p.dst, p.tha = 2, b, b }), []string{"b"}},
		{"NS", ns(func(*ndPacket) {}), []string{"b"}},
		{"NS without option", ns(func(p *ndPacket) { p.option = 0 }), []string{"b"}},
		{"NS from derived link-local", ns(func(p *ndPacket) { p.from = linkLocalOf(a) }), []string{"b"}},
		{"NS from drawn link-local", ns(func(p *ndPacket) { p.from = "fe80::1234" }), []string{"b"}},
		{"NA", na(func(*ndPacket) {}), []string{"b"}},
		{"NA without option", na(func(p *ndPacket) { p.option = 0 }), []string{"b"}},
		{"NA for own link-local", na(func(p *ndPacket) { p.target = linkLocalOf(a) }), []string{"b"}},
		{"link-local traffic", udpFrame(b, a, linkLocalOf(a), linkLocalOf(b), 1, 2), []string{"b"}},
		{"echo request", icmp6(128, "fd10::10"), []string{"b"}},

		{"IPv4, other MAC", udpFrame(b, stranger, "10.10.0.10", "10.10.0.11", 1000, 2000), nil},
		{"IPv4, neighbour's MAC", udpFrame(b, b, "10.10.0.10", "10.10.0.11", 1000, 2000), nil},
		{"IPv4, gateway's MAC", udpFrame(b, gw, "10.10.0.10", "10.10.0.11", 1000, 2000), nil},
		{"IPv4, group MAC as source", udpFrame(b, group, "10.10.0.10", "10.10.0.11", 1000, 2000), nil},
		{"IPv4, free address", udpFrame(b, a, "10.10.0.99", "10.10.0.11", 1000, 2000), nil},
		{"IPv4, neighbour's address", udpFrame(gw, a, "10.10.0.11", "10.10.0.1", 1000, 2000), nil},
		{"IPv4, gateway's address", udpFrame(b, a, "10.10.0.1", "10.10.0.11", 1000, 2000), nil},
		{"IPv4, outside address", udpFrame(gw, a, "8.8.8.8", "10.10.0.1", 1000, 2000), nil},
		{"IPv4, multicast source", udpFrame(b, a, "224.0.0.5", "10.10.0.11", 1000, 2000), nil},
		{"IPv4, source 0.0.0.0", udpFrame(b, a, "0.0.0.0", "10.10.0.11", 68, 67), nil},
		{"IPv6, other MAC", udpFrame(b, stranger, "fd10::10", "fd10::11", 1000, 2000), nil},
		{"IPv6, free address", udpFrame(b, a, "fd10::99", "fd10::11", 1000, 2000), nil},
		{"IPv6, neighbour's address", udpFrame(gw, a, "fd10::11", "fd10::1", 1000, 2000), nil},
		{"IPv6, multicast source", udpFrame(b, a, "ff02::1", "fd10::11", 1000, 2000), nil},
		{"IPv6, unspecified source", udpFrame(b, a, "::", "fd10::11", 1000, 2000), nil},
		{"IPv6, neighbour's link-local", udpFrame(b, a, linkLocalOf(gw), "fd10::11", 1000, 2000), nil},

		{"ARP, other MAC in Ethernet", arp(func(p *arpPacket) { p.src = stranger }), nil},
		{"ARP, other MAC in ARP", arp(func(p *arpPacket) { p.sha = stranger }), nil},
		{"ARP, neighbour's MAC in ARP", arp(func(p *arpPacket) { p.sha = b }), nil},
		{"ARP, gateway's address", arp(func(p *arpPacket) { p.spa = ip("10.10.0.1") }), nil},
		{"ARP, free address", arp(func(p *arpPacket) { p.spa = ip("10.10.0.99") }), nil},
		{"ARP reply, gateway's address", arp(func(p *arpPacket) { p.op, p.dst, p.spa = 2, b, ip("10.10.0.1") }), nil},
		{"ARP reply, other MAC in ARP", arp(func(p *arpPacket) { p.op, p.dst, p.sha = 2, b, stranger }), nil},
		{"ARP probe for a neighbour's address", arp(func(p *arpPacket) { p.spa = ip("0.0.0.0") }), nil},
		{"gratuitous ARP for a neighbour's address", arp(func(p *arpPacket) { p.spa = ip("10.10.0.11") }), nil},

		{"NS, other MAC in Ethernet", ns(func(p *ndPacket) { p.src = stranger }), nil},
		{"NS, other MAC in option", ns(func(p *ndPacket) { p.lladdr = stranger }), nil},
		{"NS, gateway's address", ns(func(p *ndPacket) { p.from = "fd10::1" }), nil},
		{"NS, gateway's link-local", ns(func(p *ndPacket) { p.from = linkLocalOf(gw) }), nil},
		{"NS, target ::", ns(func(p *ndPacket) { p.target = "::" }), nil},
		{"DAD for a neighbour's address", ns(func(p *ndPacket) { p.from, p.option = "::", 0 }), nil},
		{"DAD for the gateway's address", ns(func(p *ndPacket) { p.from, p.option, p.target = "::", 0, "fd10::1" }), nil},
		{"DAD for the gateway's link-local", ns(func(p *ndPacket) { p.from, p.option, p.target = "::", 0, linkLocalOf(gw) }), nil},
		{"DAD with an option", ns(func(p *ndPacket) { p.from, p.target = "::", "fd10::10" }), nil},
		{"NA, other MAC in Ethernet", na(func(p *ndPacket) { p.src = stranger }), nil},
		{"NA, other MAC in option", na(func(p *ndPacket) { p.lladdr = stranger }), nil},
		{"NA for the gateway", na(func(p *ndPacket) { p.target = "fd10::1" }), nil},
		{"NA for the gateway's link-local", na(func(p *ndPacket) { p.target = linkLocalOf(gw) }), nil},
		{"NA for a free address", na(func(p *ndPacket) { p.target = "fd10::99" }), nil},
		{"NA from the gateway's address", na(func(p *ndPacket) { p.from = "fd10::1" }), nil},
		{"NS with a code", ns(func(p *ndPacket) { p.code = 1 }), nil},
		{"NA with a code", na(func(p *ndPacket) { p.code = 1 }), nil},
		{"NA for target ::", na(func(p *ndPacket) { p.target = "::" }), nil},

		{"router advertisement", icmp6(134, linkLocalOf(a)), nil},
		{"redirect", icmp6(137, linkLocalOf(a)), nil},
		{"DHCP server reply", udpFrame(b, a, "10.10.0.10", "10.10.0.11", 67, 68), nil},
		{"DHCPv6 server reply", udpFrame(b, a, linkLocalOf(a), "fd10::11", 547, 546), nil},
		{"802.1Q tag", tagged(good, 0x8100, 10), nil},
		{"802.1Q tag of VLAN 0", tagged(good, 0x8100, 0), nil},
		{"802.1Q priority tag", tagged(good, 0x8100, 0xa000), nil},
		{"802.1ad tag", tagged(good, 0x88a8, 10), nil},
		{"two tags", tagged(tagged(good, 0x8100, 10), 0x88a8, 20), nil},
		{"tagged ARP", tagged(arp(func(*arpPacket) {}), 0x8100, 10), nil},
		{"other protocol", frameOf(b, a, 0x88b6, make([]byte, 46)), nil},
		{"RARP", frameOf(broadcast, a, 0x8035, make([]byte, 46)), nil},
		{"IPv4 broadcast", udpFrame(broadcast, a, "10.10.0.10", "10.10.0.255", 1000, 2000), nil},
		{"IPv4 multicast", udpFrame(mac{1, 0, 0x5e, 0, 0, 0xfb}, a, "10.10.0.10", "224.0.0.251", 5353, 5353), nil},
		{"to nobody's MAC", udpFrame(stranger, a, "10.10.0.10", "10.10.0.11", 1000, 2000), nil},
		{"to itself", udpFrame(a, a, "10.10.0.10", "10.10.0.10", 1000, 2000), nil},
		{"to itself by the gateway", udpFrame(gw, a, "10.10.0.10", "10.10.0.10", 1000, 2000), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := l.on(t)
			// What resembles it and is good comes first: the datapath's cache
			// must not take one for the other.
			for prefix, frame := range map[string][]byte{
				"IPv4": good, "IPv6": good6, "ARP": arp(func(*arpPacket) {}), "NS": ns(func(*ndPacket) {}), "DAD": ns(func(*ndPacket) {}), "NA": na(func(*ndPacket) {}),
			} {
				if strings.HasPrefix(test.name, prefix) {
					l.expect("a", frame, "b")
				}
			}
			l.expect("a", test.frame, test.want...)
		})
	}
}
