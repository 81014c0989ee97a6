package linux

import (
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestLinkerConforms(t *testing.T) {
	podnettest.TestLinker(t, func(t *testing.T) podnettest.LinkerUnderTest {
		return podnettest.LinkerUnderTest{
			Linker: newLinker(t, Config{DisableTXChecksum: true}),
			Request: func(t *testing.T, n int) podnet.Request {
				req := request4(fmt.Sprint("conform", n), newNS(t))
				req.Addresses = []ifstore.Address{addr(fmt.Sprintf("10.1.2.%d/24", 10+n), "10.1.2.1"), addr(fmt.Sprintf("fd00::%d/64", 10+n), "fd00::1")}
				return req
			},
			Leftovers: func(t *testing.T) []string { return hostLinks(t) },
			Break: func(t *testing.T, iface ifstore.Interface) {
				host, err := netlink.LinkByName(iface.Name)
				if err == nil {
					err = netlink.LinkSetDown(host)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
