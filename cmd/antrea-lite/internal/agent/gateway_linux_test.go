package agent

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
)

// TestGatewayIsKept: whoever changes it, and when Open vSwitch makes it anew.
func TestGatewayIsKept(t *testing.T) {
	n := newNode(t)
	n.startReady()
	a, _ := n.plug("a", "")
	reaches := func() error {
		if _, err := n.cni("STATUS", "", ""); err != nil {
			return err
		}
		return pingable(a)
	}
	link, err := netlink.LinkByName("gw0")
	if err != nil {
		t.Fatal(err)
	}
	addr, err := netlink.ParseAddr("10.10.0.1/24")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrDel(link, addr); err != nil {
		t.Fatal(err)
	}
	n.until("the address is back", reaches)
	if err := netlink.LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	n.until("the gateway is up", reaches)
	// The userspace datapath's gateway goes with ovs-vswitchd and comes back naked.
	if err := errors.Join(n.sw.KillVswitchd(), n.sw.StartVswitchd()); err != nil {
		t.Fatal(err)
	}
	n.until("the gateway works after a restart of ovs-vswitchd", reaches)
	if _, err := n.sw.Vsctl("del-port", "gw0"); err != nil {
		t.Fatal(err)
	}
	n.until("the gateway works after its port was deleted", reaches)
	// Renumbered by somebody, the flows follow.
	if _, err := n.sw.Vsctl("set", "interface", "gw0", "ofport_request=77"); err != nil {
		t.Fatal(err)
	}
	if number, err := n.sw.Vsctl("get", "interface", "gw0", "ofport"); err != nil || number != "77" {
		t.Fatalf("the gateway's number is %s, %v", number, err)
	}
	n.until("the gateway works with another number", reaches)
	var s api.Status
	n.until("status tells the number", func() error {
		if err := n.get(api.PathStatus, "", &s); err != nil || s.Gateway.OFPort != 77 {
			return fmt.Errorf("gateway %+v, %v", s.Gateway, err)
		}
		return nil
	})
	n.unplug("a")
}
