package linux

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Links come and go all the time, on the host and in the container's own
// namespace: no Link, Check, Alive or Unlink may take that for a fault, nor an
// interrupted list for "gone" (NL-6, NL-7).
func TestChurn(t *testing.T) {
	const workers, cycles = 25, 40
	ctx := context.Background()
	l := newLinker(t, Config{DisableTXChecksum: true})
	stay := link(t, l, request4("stays", newNS(t)))

	stop := make(chan struct{})
	var noise sync.WaitGroup
	path := newNS(t)
	noise.Go(func() { meddleWithLinks(t, stop, path, "noise") })
	noise.Go(func() { meddleWithLinks(t, stop, stay.NetNS, "hiss") })

	var group sync.WaitGroup
	for w := range workers {
		path := newNS(t)
		group.Go(func() {
			for i := range cycles {
				req := podnet.Request{
					Key: ifstore.Key{ContainerID: fmt.Sprintf("c%d-%d", w, i), IfName: "eth0"}, NetNS: path,
					Addresses: []ifstore.Address{addr("10.1.2.3/24", "10.1.2.1"), addr("fd00::3/64", "fd00::1")},
				}
				got, err := l.Link(ctx, req)
				if err != nil {
					t.Error(err)
					return
				}
				iface := record(req, got)
				if err := l.Check(ctx, iface); err != nil {
					t.Errorf("Check: %v", err)
				}
				if alive, err := l.Alive(ctx, stay); !alive || err != nil {
					t.Errorf("Alive: %v, %v", alive, err)
				}
				if err := l.Check(ctx, stay); err != nil {
					t.Errorf("Check of the one that stays: %v", err)
				}
				if err := l.Unlink(ctx, iface); err != nil {
					t.Errorf("Unlink: %v", err)
				}
			}
		})
	}
	group.Wait()
	close(stop)
	noise.Wait()
	if left := hostLinks(t); len(left) != 1 || left[0] != stay.Name {
		t.Errorf("left: %v", left)
	}
}

// meddleWithLinks makes and removes links, addresses and routes in a namespace.
func meddleWithLinks(t *testing.T, stop <-chan struct{}, path, name string) {
	within(t, path, func(h *netlink.Handle) {
		for {
			select {
			case <-stop:
				return
			default:
			}
			veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, Flags: net.FlagUp}, PeerName: name + "p"}
			if err := h.LinkAdd(veth); err != nil {
				t.Error(err)
				return
			}
			for i := range 20 {
				a, _ := netlink.ParseAddr(fmt.Sprintf("172.16.%d.1/24", i))
				if err := h.AddrAdd(veth, a); err != nil {
					t.Error(err)
				}
			}
			if err := h.LinkDel(veth); err != nil {
				t.Error(err)
				return
			}
		}
	})
}
