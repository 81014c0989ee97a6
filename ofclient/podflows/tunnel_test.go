package podflows

import (
	"net/netip"
	"strings"
	"testing"
)

func tunnelNode() Node {
	return Node{
		Gateway:  Gateway{OFPort: 2, MAC: [6]byte{2, 0, 0, 0, 0, 1}},
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("fd10::/64")},
		Tunnel: Tunnel{OFPort: 9, Peers: []Peer{
			{Addr: netip.MustParseAddr("192.0.2.2"), PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.20.0.7/24"), netip.MustParsePrefix("fd20::/64")}},
			{Addr: netip.MustParseAddr("2001:db8::3"), PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.30.0.0/24")}},
		}},
	}
}

func TestTunnelIsRefused(t *testing.T) {
	if _, err := tunnelNode().validate(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*Node)
		want   string
	}{
		{"no port", func(n *Node) { n.Tunnel.OFPort = 0 }, "no port"},
		{"port that is none", func(n *Node) { n.Tunnel.OFPort = 0xffffffff }, "-1"},
		{"no gateway", func(n *Node) { n.Gateway.OFPort = 0 }, "gateway"},
		{"peer without an address", func(n *Node) { n.Tunnel.Peers[0].Addr = netip.Addr{} }, "peer"},
		{"peer with our range", func(n *Node) { n.Tunnel.Peers[0].PodCIDRs[0] = netip.MustParsePrefix("10.10.0.0/16") }, "10.10.0.0/24"},
		{"two peers with one range", func(n *Node) { n.Tunnel.Peers[1].PodCIDRs[0] = netip.MustParsePrefix("10.20.0.128/25") }, "overlaps 10.20.0.0/24"},
		{"peer with everything", func(n *Node) { n.Tunnel.Peers[1].PodCIDRs[0] = netip.MustParsePrefix("0.0.0.0/0") }, "0.0.0.0/0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := tunnelNode()
			test.change(&n)
			if _, err := n.validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// What the caller gave stays the caller's.
func TestTunnelIsCloned(t *testing.T) {
	n := tunnelNode()
	if _, err := n.validate(); err != nil {
		t.Fatal(err)
	}
	if got := n.Tunnel.Peers[0].PodCIDRs[0].String(); got != "10.20.0.7/24" {
		t.Errorf("the caller's prefix became %s", got)
	}
}
