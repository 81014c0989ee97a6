package k8s

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// tunnelOverhead is what Geneve without options and VXLAN add to a packet over IPv4:
// the inner Ethernet header, 8 bytes of their own, UDP and IPv4.
const tunnelOverhead = 14 + 8 + 8 + 20

// tunnelCarries waits for the first reply through the tunnel: the userspace datapath
// drops the first packet for a node and asks for that node's MAC instead.
func (w *world) tunnelCarries(from, to pod) {
	w.t.Helper()
	for i, at := range from.at() {
		w.until("the tunnel carries "+family(at.Addr), func() error {
			_, err := lab.Ping(at.NS, at.Addr, to.at()[i].Addr, 56, time.Second)
			return err
		})
	}
}

// wentThroughTheTunnel demands that a Pod's MTU leaves room for the tunnel's headers,
// and that the tunnel's port of its node has counted what the Pod sent to another.
func (w *world) wentThroughTheTunnel(p pod) {
	w.t.Helper()
	inside, err := lab.MTU(p.ns, "eth0")
	w.must(err)
	outside, err := lab.MTU(p.node.NetNS(), "eth0")
	w.must(err)
	if inside != outside-tunnelOverhead {
		w.t.Errorf("a Pod's MTU is %d and the node's %d, want %d less", inside, outside, tunnelOverhead)
	}
	w.until("the tunnel's port has counted 100 MB", func() error { // Open vSwitch writes its counters every five seconds
		out, err := p.node.Run(w.ctx, "ovs-vsctl", "--timeout=10", "get", "Interface", "antrea-tun0", "statistics:tx_bytes")
		if err != nil {
			return err
		}
		sent, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if err == nil && sent < bulk {
			err = fmt.Errorf("it has sent %d bytes", sent)
		}
		return err
	})
}
