package e2e

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// wire opens a packet socket that is closed with the test.
func (n *node) wire(ns, ifname string) *lab.Wire {
	n.t.Helper()
	w, err := lab.OpenWire(ns, ifname)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { w.Close() })
	return w
}

// seen tells whether a frame that match accepts comes within the time.
func seen(w *lab.Wire, within time.Duration, match func([]byte) bool) bool {
	_, err := w.Wait(time.Now().Add(within), match)
	return err == nil
}

func (n *node) mac(p *lab.Pod) lab.MAC {
	n.t.Helper()
	mac, err := p.MAC()
	if err != nil {
		n.t.Fatal(err)
	}
	return mac
}

func (n *node) gatewayMAC() lab.MAC {
	n.t.Helper()
	link, err := net.InterfaceByName(lab.GatewayName)
	if err != nil {
		n.t.Fatal(err)
	}
	return lab.MAC(link.HardwareAddr)
}

func etherType(v6 bool) uint16 {
	if v6 {
		return lab.EthIPv6
	}
	return lab.EthIPv4
}

// What a Pod must not be able to send reaches neither another Pod nor the host.
func TestSpoofedFramesAreDropped(t *testing.T) {
	n := start(t, nil)
	rogue, victim, third := n.plug("rogue", nil), n.plug("victim", nil), n.plug("third", nil)
	n.pings(rogue, victim, third)

	rogueMAC, victimMAC, gatewayMAC := n.mac(rogue), n.mac(victim), n.gatewayMAC()
	foreign := lab.MAC{0x02, 0xde, 0xad, 0xbe, 0xef, 0x01}
	stranger4, stranger6 := netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8::7")
	allNodes := netip.MustParseAddr("ff02::1")
	allNodesMAC := lab.MAC{0x33, 0x33, 0, 0, 0, 1}
	r4, r6, v4, v6 := rogue.Addr(false), rogue.Addr(true), victim.Addr(false), victim.Addr(true)
	g4, g6 := rogue.Gateway(false), rogue.Gateway(true)

	mark := []byte("-podnet-spoof-test-")
	udp := func(src, dst netip.Addr, sport, dport uint16) []byte {
		return lab.UDP(netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport), mark)
	}
	advertise := func(target netip.Addr, lladdr lab.MAC) []byte {
		return append(lab.Ethernet(allNodesMAC, rogueMAC, lab.EthIPv6, lab.NeighborAdvertisement(r6, allNodes, target, lladdr)), mark...)
	}
	arp := func(dst lab.MAC, op uint16, sha lab.MAC, spa, tpa netip.Addr) []byte {
		return append(lab.Ethernet(dst, rogueMAC, lab.EthARP, lab.ARP(op, sha, spa, victimMAC, tpa)), mark...)
	}
	router := lab.ICMPv6(r6, allNodes, append([]byte{134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, mark...))

	frames := map[string][]byte{
		"another MAC":                         lab.Ethernet(victimMAC, foreign, lab.EthIPv4, udp(r4, v4, 1, 9)),
		"the victim's own MAC":                lab.Ethernet(victimMAC, victimMAC, lab.EthIPv4, udp(r4, v4, 1, 9)),
		"another IPv4 address":                lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv4, udp(stranger4, v4, 1, 9)),
		"another Pod's IPv4 address":          lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv4, udp(third.Addr(false), v4, 1, 9)),
		"the gateway's IPv4 address":          lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv4, udp(g4, v4, 1, 9)),
		"another IPv6 address":                lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv6, udp(stranger6, v6, 1, 9)),
		"the gateway's IPv6 address":          lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv6, udp(g6, v6, 1, 9)),
		"ARP reply for the gateway":           arp(victimMAC, 2, rogueMAC, g4, v4),
		"gratuitous ARP for another Pod":      arp(lab.Broadcast(), 1, rogueMAC, third.Addr(false), third.Addr(false)),
		"ARP with another hardware address":   arp(lab.Broadcast(), 1, foreign, r4, v4),
		"advertisement of the gateway":        advertise(g6, rogueMAC),
		"advertisement of another Pod":        advertise(third.Addr(true), rogueMAC),
		"advertisement with another lladdr":   advertise(r6, foreign),
		"router advertisement":                lab.Ethernet(allNodesMAC, rogueMAC, lab.EthIPv6, router),
		"DHCP server":                         lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv4, udp(r4, v4, 67, 68)),
		"DHCPv6 server":                       lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv6, udp(r6, v6, 547, 546)),
		"a VLAN tag":                          lab.Tagged(lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv4, udp(r4, v4, 1, 9)), 10),
		"a priority tag":                      lab.Tagged(lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv4, udp(r4, v4, 1, 9)), 0),
		"two VLAN tags":                       lab.Tagged(lab.Tagged(lab.Ethernet(victimMAC, rogueMAC, lab.EthIPv4, udp(r4, v4, 1, 9)), 20), 10),
		"another MAC to the gateway":          lab.Ethernet(gatewayMAC, foreign, lab.EthIPv4, udp(r4, g4, 1, 9)),
		"another IPv4 address to the gateway": lab.Ethernet(gatewayMAC, rogueMAC, lab.EthIPv4, udp(stranger4, g4, 1, 9)),
	}
	attacker := n.wire(rogue.NetNS, rogue.IfName)
	for what, frame := range frames {
		victimWire, gatewayWire := n.wire(victim.NetNS, victim.IfName), n.wire(lab.Host, lab.GatewayName)
		if err := attacker.Send(frame); err != nil {
			t.Fatal(err)
		}
		// An honest frame behind it tells when the other would have been there.
		honest := append([]byte{}, mark...)
		honest[0]++
		control := func(f []byte) bool { return bytes.Contains(f, honest) }
		for _, dst := range []struct {
			name string
			wire *lab.Wire
			mac  lab.MAC
			addr netip.Addr
		}{{"victim", victimWire, victimMAC, v4}, {"gateway", gatewayWire, gatewayMAC, g4}} {
			datagram := lab.UDP(netip.AddrPortFrom(r4, 1), netip.AddrPortFrom(dst.addr, 9), honest)
			if err := attacker.Send(lab.Ethernet(dst.mac, rogueMAC, lab.EthIPv4, datagram)); err != nil {
				t.Fatal(err)
			}
			leaked := false
			if !seen(dst.wire, pingTime, func(f []byte) bool {
				leaked = leaked || bytes.Contains(f, mark)
				return control(f)
			}) {
				t.Errorf("%s: the honest frame behind it did not reach the %s", what, dst.name)
			}
			if leaked {
				t.Errorf("%s: reached the %s", what, dst.name)
			}
		}
		victimWire.Close()
		gatewayWire.Close()
	}
	// Nobody's neighbour table was poisoned.
	n.pings(rogue, victim, third)
	n.pingsGateway(victim)
}
