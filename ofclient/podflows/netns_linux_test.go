package podflows_test

import (
	"net"
	"runtime"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

func listen(dev string) (*packet.Conn, error) {
	ifi, err := net.InterfaceByName(dev)
	if err != nil {
		return nil, err
	}
	return packet.Listen(ifi, packet.Raw, unix.ETH_P_ALL, nil)
}

// in runs f in a network namespace, on a thread that ends with it.
func (l *lab) in(ns string, f func() error) {
	l.t.Helper()
	l.ok(inNS(ns, f))
}

func inNS(path string, f func() error) error {
	errc := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if path != "" {
			ns, err := netns.GetFromPath(path)
			if err != nil {
				errc <- err
				return
			}
			defer ns.Close()
			if err := netns.Set(ns); err != nil {
				errc <- err
				return
			}
		}
		errc <- f()
	}()
	return <-errc
}

func mustNet(s string) *net.IPNet {
	_, n, err := net.ParseCIDR(s)
	if err != nil {
		panic(err)
	}
	return n
}
