package podflows_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/ofclient/podflows"
)

const tunnelName = "tun0"

// Packets cross a tunnel only between the ranges of its ends. The userspace
// datapath has no route for the tunnel here, so the switch's own trace is the witness.
func TestTunnel(t *testing.T) {
	l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24", "fd10::10/64"}}, podSpec{name: "b", addrs: []string{"10.10.0.11/24"}},
		podSpec{name: "l", l2: true})
	l.vsctl("add-port", bridge, tunnelName, "--", "set", "interface", tunnelName, "type=geneve", "options:remote_ip=flow", "options:key=flow")
	tun := l.ofport(tunnelName)
	four, six := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::3")
	l.node.Tunnel = podflows.Tunnel{OFPort: tun, Peers: []podflows.Peer{
		{Addr: four, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/24"), netip.MustParsePrefix("fd20::/64")}},
		{Addr: six, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.30.0.0/24")}},
	}}
	l.ok(l.flows.SetNode(t.Context(), l.node))
	l.audit()
	a, gw := l.pod("a"), l.gateway

	for _, test := range []struct{ from, src, dst, to string }{
		{"a", "10.10.0.10", "10.20.0.7", "tun_dst"},
		{"a", "fd10::10", "fd20::7", "tun_dst"},
		{"a", "10.10.0.10", "10.30.0.7", "tun_ipv6_dst"},
		{"gateway", "10.10.0.1", "10.20.0.7", "tun_dst"},
		{"gateway", "10.10.0.11", "10.20.0.7", "tun_dst"}, // a Service that the host translated
		{"a", "10.10.0.10", "10.40.0.7", "gateway"},
		{"a", "10.20.0.9", "10.20.0.7", ""}, // not its own address
		{"l", "10.10.9.9", "10.20.0.7", ""},
	} {
		t.Run(fmt.Sprintf("%s as %s to %s", test.from, test.src, test.dst), func(t *testing.T) {
			l := l.on(t)
			s := l.pod(test.from)
			out := l.trace(test.from, udpFrame(gw.mac, s.mac, test.src, test.dst, 1, 2))
			switch test.to {
			case "gateway":
				l.traceEnds(out, gw.iface.OFPort)
			case "":
				l.traceEnds(out, 0)
			default:
				if !strings.Contains(out, "->"+test.to) || !strings.Contains(out, fmt.Sprintf("output port is %d", tun)) && !strings.Contains(out, "native tunnel") && !strings.Contains(out, "tunnel(") {
					t.Errorf("not into the tunnel by %s:\n%s", test.to, out)
				}
			}
		})
	}

	for _, test := range []struct {
		name, tunnel, src, dst string
		port                   uint32 // 0: dropped
	}{
		{"a Pod of a peer", "tun_src=192.0.2.2", "10.20.0.7", "10.10.0.10", a.iface.OFPort},
		{"IPv6 in IPv4", "tun_src=192.0.2.2", "fd20::7", "fd10::10", a.iface.OFPort},
		{"IPv4 in IPv6", "tun_ipv6_src=2001:db8::3", "10.30.0.7", "10.10.0.10", a.iface.OFPort},
		{"to the gateway", "tun_src=192.0.2.2", "10.20.0.7", "10.10.0.1", gw.iface.OFPort},
		{"another peer's range", "tun_src=192.0.2.2", "10.30.0.7", "10.10.0.10", 0},
		{"a stranger's end", "tun_src=192.0.2.9", "10.20.0.7", "10.10.0.10", 0},
		{"in transit to a peer", "tun_src=192.0.2.2", "10.20.0.7", "10.30.0.7", 0},
		{"in transit to the world", "tun_src=192.0.2.2", "10.20.0.7", "198.51.100.1", 0},
		{"one of our own addresses", "tun_src=192.0.2.2", "10.10.0.11", "10.10.0.10", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := l.on(t)
			// Of a packet in bytes the trace forgets the tunnel.
			what := "udp,nw_src=%s,nw_dst=%s"
			if netip.MustParseAddr(test.src).Is6() {
				what = "udp6,ipv6_src=%s,ipv6_dst=%s"
			}
			out, err := l.sw.Appctl("ofproto/trace", bridge, fmt.Sprintf("in_port=%d,%s,dl_src=02:09:09:09:09:09,dl_dst=0e:70:6f:64:6e:74,"+what+",nw_ttl=64,udp_src=1,udp_dst=2",
				tun, test.tunnel, test.src, test.dst))
			l.ok(err)
			l.traceEnds(out, test.port)
		})
	}
	// A node that leaves takes its flows with it.
	l.node.Tunnel.Peers = l.node.Tunnel.Peers[1:]
	l.ok(l.flows.SetNode(t.Context(), l.node))
	l.audit()
	l.traceEnds(l.trace("a", udpFrame(gw.mac, a.mac, "10.10.0.10", "10.20.0.7", 1, 2)), gw.iface.OFPort)
}

// traceEnds checks to which port the last output of a trace is; 0: none at all.
func (l *lab) traceEnds(trace string, port uint32) {
	l.t.Helper()
	if port == 0 {
		if !endsInDrop(trace) {
			l.t.Errorf("not dropped:\n%s", trace)
		}
		return
	}
	want := fmt.Sprintf("-> output port is %d", port)
	if !strings.Contains(trace, want) {
		l.t.Errorf("no %q:\n%s", want, trace)
	}
}
