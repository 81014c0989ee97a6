package vswitch_test

import (
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// pool makes n netdevs that stay until the test binary's network namespace goes:
// deleting a veth takes 20 ms (fact 25).
func pool(b *testing.B, prefix string, n int) []string {
	var names []string
	for i := range n / 2 {
		la := netlink.NewLinkAttrs()
		la.Name = fmt.Sprintf("%s%d", prefix, i)
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: "p" + la.Name}); err != nil {
			b.Fatal(err)
		}
		names = append(names, la.Name, "p"+la.Name)
	}
	return names
}

// BenchmarkAdd times AddPort until the port has its number, for callers that
// come alone and at once, on bridges of different size; and ovs-vsctl beside it.
func BenchmarkAdd(b *testing.B) {
	filler, fresh := pool(b, "fill", 400), pool(b, "b", 64)
	for _, size := range []int{0, 100, 400} {
		b.Run(fmt.Sprintf("ports=%d", size), func(b *testing.B) { benchmarkSize(b, filler[:size], fresh) })
	}
}

// benchmarkSize has a switch of its own: two in one namespace would fight over
// the bridge's netdev.
func benchmarkSize(b *testing.B, filler, fresh []string) {
	sw := vswitchtest.Start(b)
	c := start(b, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	if _, err := c.EnsureBridge(soon(b)); err != nil {
		b.Fatal(err)
	}
	plug := func(names []string) []podnet.PortKey {
		keys := make([]podnet.PortKey, len(names))
		each(len(names), func(i int) {
			var err error
			if keys[i], err = c.AddPort(b.Context(), port(names[i])); err == nil {
				_, err = c.WaitOFPort(b.Context(), keys[i])
			}
			if err != nil {
				b.Error(err)
			}
		})
		return keys
	}
	plug(filler)
	for _, atOnce := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("atOnce=%d", atOnce), func(b *testing.B) {
			for range b.N {
				keys := plug(fresh[:atOnce])
				b.StopTimer()
				each(atOnce, func(i int) { c.DeletePort(b.Context(), keys[i]) })
				if _, err := sw.Vsctl("show"); err != nil { // let ovs-vswitchd come to rest
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*atOnce), "µs/port")
		})
	}
	b.Run("ovs-vsctl", func(b *testing.B) {
		for range b.N {
			if _, err := sw.Vsctl("add-port", br, fresh[0]); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if _, err := sw.Vsctl("del-port", br, fresh[0]); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}
