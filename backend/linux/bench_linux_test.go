package linux

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/containernetworking/plugins/pkg/ip"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func BenchmarkLink(b *testing.B) {
	for name, addrs := range map[string][]ifstore.Address{
		"v4":   {addr("10.1.2.3/24", "10.1.2.1")},
		"dual": {addr("10.1.2.3/24", "10.1.2.1"), addr("fd00::3/64", "fd00::1")},
	} {
		b.Run(name, func(b *testing.B) {
			l := newLinker(b, Config{DisableTXChecksum: true})
			path := newNS(b)
			for i := range b.N {
				req := podnet.Request{Key: ifstore.Key{ContainerID: fmt.Sprint("c", i), IfName: "eth0"}, NetNS: path, Addresses: addrs}
				got, err := l.Link(context.Background(), req)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := l.Unlink(context.Background(), record(req, got)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkLinkContainernetworking does what the bridge plugin of
// containernetworking does for its cable: the mark to beat.
func BenchmarkLinkContainernetworking(b *testing.B) {
	path := newNS(b)
	host, err := ns.GetCurrentNS()
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	for range b.N {
		container, err := ns.GetNS(path)
		if err != nil {
			b.Fatal(err)
		}
		var name string
		err = container.Do(func(ns.NetNS) error {
			hostVeth, _, err := ip.SetupVeth("eth0", 1500, "", host)
			if err != nil {
				return err
			}
			name = hostVeth.Name
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
			a, _ := netlink.ParseAddr("10.1.2.3/24")
			if err := netlink.AddrAdd(link, a); err != nil {
				return err
			}
			gw, _ := netlink.ParseAddr("10.1.2.1/32")
			return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gw.IP})
		})
		if err != nil {
			b.Fatal(err)
		}
		container.Close()
		b.StopTimer()
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkUnlink removes the given number of interfaces at the same moment.
func BenchmarkUnlink(b *testing.B) {
	l := newLinker(b, Config{})
	for _, n := range []int{1, 16, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchUnlink(b, l, n) })
	}
}

func benchUnlink(b *testing.B, l *Linker, n int) {
	for b.Loop() {
		b.StopTimer()
		ifaces := make([]ifstore.Interface, n)
		path := newNS(b)
		for i := range ifaces {
			req := podnet.Request{Key: ifstore.Key{ContainerID: fmt.Sprint("c", i), IfName: fmt.Sprint("eth", i)}, NetNS: path, NoIPAM: true}
			got, err := l.Link(context.Background(), req)
			if err != nil {
				b.Fatal(err)
			}
			ifaces[i] = record(req, got)
		}
		b.StartTimer()
		var group sync.WaitGroup
		for _, iface := range ifaces {
			group.Go(func() {
				if err := l.Unlink(context.Background(), iface); err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/link")
}
