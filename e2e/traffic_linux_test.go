package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/antrea-lite/podnet/e2e/lab"
)

func TestPodsTalk(t *testing.T) {
	n := start(t, nil)
	a, b, c := n.plug("a", nil), n.plug("b", nil), n.plug("c", nil)
	n.pings(a, b, c)
	for _, p := range []*lab.Pod{a, b, c} {
		n.pingsGateway(p)
		if err := n.Check(t.Context(), p); err != nil {
			t.Errorf("CHECK %s: %v", p.Name, err)
		}
	}
	for _, v6 := range []bool{false, true} {
		n.sends(a.At(v6), b.At(v6), 4<<20)
		gateway := lab.Endpoint{Addr: a.Gateway(v6)}
		n.sends(a.At(v6), gateway, 4<<20)
		n.sends(gateway, a.At(v6), 4<<20)
	}
}

// The largest packet that fits must pass, one byte more must be refused by the
// sender itself.
func TestFullSizedPackets(t *testing.T) {
	n := start(t, nil)
	a, b := n.plug("a", map[string]any{"mtu": 1400}), n.plug("b", nil)
	for _, v6 := range []bool{false, true} {
		header := 28
		if v6 {
			header = 48
		}
		if _, err := lab.Ping(a.NetNS, a.Addr(v6), b.Addr(v6), 1400-header, pingTime); err != nil {
			t.Errorf("1400 bytes: %v", err)
		}
		if _, err := lab.Ping(a.NetNS, a.Addr(v6), b.Addr(v6), 1401-header, silence); err == nil {
			t.Error("1401 bytes passed an MTU of 1400")
		}
	}
}

// ADD returns only when the flows are in: the very first packet is answered.
func TestFirstPingOfEveryPod(t *testing.T) {
	n := start(t, nil)
	first := n.plug("p0", nil)
	lost := 0
	for i := 1; i < options.pods; i++ {
		p := n.plug(fmt.Sprintf("p%d", i), nil)
		if _, err := lab.Ping(p.NetNS, p.Addr(false), first.Addr(false), 56, pingTime); err != nil {
			t.Errorf("p%d: %v", i, err)
			lost++
		}
	}
	t.Logf("%d Pods, %d first pings lost", options.pods, lost)
}

func TestParallelAdds(t *testing.T) {
	const atOnce = 16
	n := start(t, nil)
	hub := n.plug("hub", nil)
	pods := make([]*lab.Pod, max(atOnce, options.pods/4))
	for i := range pods {
		p, err := n.NewPod(fmt.Sprintf("p%d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		pods[i], n.pods[p.Name] = p, p
	}
	inParallel(atOnce, pods, func(p *lab.Pod) {
		if err := n.Add(t.Context(), p); err != nil {
			t.Error(err)
			return
		}
		for _, v6 := range []bool{false, true} {
			if _, err := lab.Ping(p.NetNS, p.Addr(v6), hub.Addr(v6), 56, pingTime); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	})
	var addrs []netip.Addr
	for _, p := range pods {
		if p.Result != nil {
			addrs = append(addrs, p.Addr(false), p.Addr(true))
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	if unique := slices.Compact(slices.Clone(addrs)); len(unique) != 2*len(pods) {
		t.Errorf("%d different addresses for %d Pods: %v", len(unique), len(pods), addrs)
	}
	inParallel(atOnce, pods, func(p *lab.Pod) {
		if err := n.Del(t.Context(), p); err != nil {
			t.Error(err)
		}
	})
}

// inParallel calls do for every Pod, width at a time.
func inParallel(width int, pods []*lab.Pod, do func(*lab.Pod)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, width)
	for _, p := range pods {
		slots <- struct{}{}
		wg.Go(func() {
			do(p)
			<-slots
		})
	}
	wg.Wait()
}

// Pods of one VLAN talk, others do not, in both families, also by layer 2.
func TestVLANsAreApart(t *testing.T) {
	n := start(t, nil)
	vlans := map[string]int{"plain1": 0, "plain2": 0, "ten1": 10, "ten2": 10, "twenty": 20}
	for name, vlan := range vlans {
		n.plug(name, map[string]any{"vlan": vlan})
	}
	for from, fromVLAN := range vlans {
		for to, toVLAN := range vlans {
			a, b := n.pods[from], n.pods[to]
			switch {
			case from == to:
			case fromVLAN == toVLAN:
				n.pings(a, b)
			default:
				n.silent(a.At(false), b.Addr(false))
				n.silent(a.At(true), b.Addr(true))
			}
		}
	}
	n.sends(n.pods["ten1"].At(false), n.pods["ten2"].At(false), 1<<20)
	n.sends(n.pods["ten1"].At(true), n.pods["ten2"].At(true), 1<<20)
}

// A Service's backend may see a packet of another Pod come from the gateway
// (the host translated its destination). The answer has to go back to the
// gateway, or nobody translates it back.
func TestReplyGoesBackToTheGateway(t *testing.T) {
	n := start(t, nil)
	client, backend := n.plug("client", nil), n.plug("backend", nil)
	clientWire := n.wire(client.NetNS, client.IfName)
	gatewayWire := n.wire(lab.Host, lab.GatewayName)
	for _, v6 := range []bool{false, true} {
		echo, err := lab.UDPEcho(backend.At(v6))
		if err != nil {
			t.Fatal(err)
		}
		defer echo.Close()
		src := netip.AddrPortFrom(client.Addr(v6), 4242)
		datagram := lab.UDP(src, echo.Addr(), []byte("translated by the host"))
		if err := gatewayWire.Send(lab.Ethernet(n.mac(backend), n.gatewayMAC(), etherType(v6), datagram)); err != nil {
			t.Fatal(err)
		}
		reply := func(f []byte) bool {
			src, dst, ok := lab.UDPOf(f)
			return ok && src == echo.Addr() && dst == netip.AddrPortFrom(client.Addr(v6), 4242)
		}
		if !seen(gatewayWire, pingTime, reply) {
			t.Errorf("IPv6 %v: the reply did not come to the gateway", v6)
		}
		// The host, which translated nothing, routes it on; then it bears the gateway's MAC.
		backendMAC := n.mac(backend)
		if seen(clientWire, silence, func(f []byte) bool { return reply(f) && bytes.Equal(f[6:12], backendMAC[:]) }) {
			t.Errorf("IPv6 %v: the reply went to the client directly", v6)
		}
		// What the client asks by itself is answered directly.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := lab.AskUDP(ctx, client.At(v6), echo.Addr()); err != nil {
			t.Errorf("IPv6 %v: %v", v6, err)
		}
		cancel()
	}
}
