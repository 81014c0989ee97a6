package nodenet

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
)

func TestPlans(t *testing.T) {
	peers := []kube.Node{
		{Name: "b", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("fd00:2::/64")},
			Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")}},
		{Name: "c", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/24"), netip.MustParsePrefix("fd00:3::/64")},
			Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.3")}},
	}
	routes := func(conf Config) string {
		list, unreached := planRoutes(conf, peers)
		return fmt.Sprint(list, unreached)
	}
	for _, test := range []struct {
		name string
		got  any
		want string
	}{
		{"noEncap goes by addresses of the same family", routes(Config{Gateway: "gw0"}),
			"[10.2.0.0/24 via 192.0.2.2 fd00:2::/64 via 2001:db8::2 10.3.0.0/24 via 192.0.2.3] []"},
		{"noEncap names what it has no way to", routes(Config{Gateway: "gw0", Own: prefixes("fd00:1::/64")}),
			"[10.2.0.0/24 via 192.0.2.2 fd00:2::/64 via 2001:db8::2 10.3.0.0/24 via 192.0.2.3] [node c: no way to [fd00:3::/64]: it has no InternalIP of IPv6 among [192.0.2.3]: give its kubelet one with --node-ip]"},
		{"encap goes into the gateway", routes(Config{Encap: true, Gateway: "gw0", MTU: 1450, Own: prefixes("10.1.0.0/24", "fd00:1::/64")}),
			"[10.2.0.0/24 via 10.2.0.1 dev gw0 fd00:2::/64 via fd00:2::1 dev gw0 10.3.0.0/24 via 10.3.0.1 dev gw0 fd00:3::/64 via fd00:3::1 dev gw0] []"},
		{"encap names a node without an address of the tunnel's family", routes(Config{Encap: true, Outer6: true, Gateway: "gw0", Own: prefixes("10.1.0.0/24")}),
			"[10.2.0.0/24 via 10.2.0.1 dev gw0] [node c: no way to [10.3.0.0/24 fd00:3::/64]: it has no InternalIP of IPv6 among [192.0.2.3]: give its kubelet one with --node-ip]"},
		{"encap, and a family that this node has not", routes(Config{Encap: true, Gateway: "gw0", Own: prefixes("10.1.0.0/24")}),
			"[10.2.0.0/24 via 10.2.0.1 dev gw0 10.3.0.0/24 via 10.3.0.1 dev gw0] []"},
		{"all Pods are inside", inside([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}, peers), "[10.1.0.0/24 10.2.0.0/24 fd00:2::/64 10.3.0.0/24 fd00:3::/64]"},
		{"IPv4 between nodes carries both", TunnelPeers(peers, false), "[{192.0.2.2 [10.2.0.0/24 fd00:2::/64]} {192.0.2.3 [10.3.0.0/24 fd00:3::/64]}]"},
		{"a node without IPv6 is left out", TunnelPeers(peers, true), "[{2001:db8::2 [10.2.0.0/24 fd00:2::/64]}]"},
	} {
		if got := fmt.Sprint(test.got); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// A Node that is wrong costs nobody else anything.
func TestSound(t *testing.T) {
	node := func(name, addr string, cidrs ...string) kube.Node {
		return kube.Node{Name: name, PodCIDRs: prefixes(cidrs...), Addresses: []netip.Addr{netip.MustParseAddr(addr)}}
	}
	sound, bad := Sound(prefixes("10.1.0.0/24"), []kube.Node{
		node("has ours", "192.0.2.2", "10.1.0.0/24"), node("has ours and one more", "192.0.2.3", "10.0.0.0/8", "fd00:3::/64"),
		node("good", "192.0.2.4", "10.4.0.0/24"), node("has the good one's", "192.0.2.5", "10.4.0.128/25"),
		node("loopback", "127.0.0.1", "10.6.0.0/24"), node("everything", "192.0.2.7", "0.0.0.0/0"),
	})
	want := "[{has ours and one more [fd00:3::/64] [192.0.2.3]} {good [10.4.0.0/24] [192.0.2.4]}]"
	if got := fmt.Sprint(sound); got != want || len(bad) != 5 {
		t.Errorf("%s, want %s; %d left out, want 5: %v", got, want, len(bad), bad)
	}
}
