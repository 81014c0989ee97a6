package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// asyncNode is a node whose agent does not wait for ports in ADD.
func asyncNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.conf.PortReadiness = config.Async
	n.conf.NotReadyAfter = config.Duration(time.Second)
	n.conf.RetryInterval = config.Duration(300 * time.Millisecond)
	return n
}

func (n *node) port(id string) (api.Port, error) {
	var ports []api.Port
	if err := n.get(api.PathPorts, "", &ports); err != nil {
		return api.Port{}, err
	}
	i := slices.IndexFunc(ports, func(p api.Port) bool { return p.ContainerID == id })
	if i < 0 {
		return api.Port{}, fmt.Errorf("no port of %s", id)
	}
	return ports[i], nil
}

// awaits waits until the port of id is in that state, and returns it.
func (n *node) awaits(id, state, cause string) (port api.Port) {
	n.t.Helper()
	n.until(fmt.Sprintf("%s is %s %s", id, state, cause), func() (err error) {
		if port, err = n.port(id); err == nil && (port.State != state || port.WaitingFor != cause) {
			err = fmt.Errorf("port %+v", port)
		}
		return err
	})
	return port
}

// reasons returns the reasons of the events of a Pod.
func (n *node) reasons(pod string) []string {
	n.t.Helper()
	var events []api.Event
	if err := n.get(api.PathEvents, pod, &events); err != nil {
		n.t.Fatal(err)
	}
	var reasons []string
	for _, e := range events {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

// TestAsyncSlowSwitch is the founding bug: Open vSwitch takes longer than
// anybody waits to give a number. ADD returns at once, the Pod is told, and has
// network as soon as the switch goes on, also when the agent was restarted meanwhile.
func TestAsyncSlowSwitch(t *testing.T) {
	n := asyncNode(t)
	n.startReady()
	if err := n.sw.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	a, _ := n.plug("a", "")
	b, _ := n.plug("b", "")
	n.plug("c", "")
	t.Logf("three ADDs with a stopped switch took %v", time.Since(begun))
	waiting := n.awaits("a", "waiting", "number")
	if waiting.WaitingSince.Before(begun.Add(-time.Second)) || waiting.OFPort != 0 {
		t.Errorf("port %+v", waiting)
	}
	n.until("the Pod is told", func() error {
		if got := n.reasons("default/a"); !slices.Equal(got, []string{"NetworkNotReady"}) {
			return fmt.Errorf("events %v", got)
		}
		return nil
	})
	n.unplug("c") // needs no switch: nothing of it has flows
	n.halt()
	n.start()
	if again := n.awaits("b", "waiting", "number"); !again.WaitingSince.Equal(again.Created) {
		t.Errorf("after a restart the wait began at %v, the ADD at %v", again.WaitingSince, again.Created)
	}
	if err := n.sw.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.awaits("a", "ready", "")
	n.awaits("b", "ready", "")
	n.pings("a", a, b)
	n.pings("b", b, gw)
	if got := n.reasons("a"); len(got) == 0 || got[len(got)-1] != "NetworkReady" {
		t.Errorf("events %v, want NetworkReady at last", got)
	}
	n.unplug("a", "b")
	n.nothingLeft()
}

// hostDevice makes what a hypervisor would: a device on the host and, in the
// container, the other end with the address and MAC that ADD told.
func (n *node) hostDevice(name, id string, result []byte) {
	n.t.Helper()
	var res struct {
		Interfaces []struct{ Name, Mac, Sandbox string }
		IPs        []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(result, &res); err != nil || len(res.Interfaces) != 2 || len(res.IPs) != 1 || res.Interfaces[0].Name != name {
		n.t.Fatalf("result %s: %v", result, err)
	}
	ns, err := netns.GetFromPath("/run/netns/" + id)
	if err != nil {
		n.t.Fatal(err)
	}
	defer ns.Close()
	la := netlink.NewLinkAttrs()
	la.Name = name
	err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: "guest0", PeerNamespace: netlink.NsFd(int(ns))})
	if err != nil {
		n.t.Fatal(err)
	}
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		n.t.Fatal(err)
	}
	defer h.Close()
	guest, err := h.LinkByName("guest0")
	if err != nil {
		n.t.Fatal(err)
	}
	mac, err := net.ParseMAC(res.Interfaces[1].Mac)
	prefix := res.IPs[0].Address
	if err == nil {
		err = errors.Join(h.LinkSetHardwareAddr(guest, mac), h.LinkSetUp(guest),
			h.AddrAdd(guest, &netlink.Addr{IPNet: ipNetOf(prefix)}))
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// TestAsyncHostDevice plugs in a device that others make after ADD.
func TestAsyncHostDevice(t *testing.T) {
	n := asyncNode(t)
	n.startReady()
	a, _ := n.plug("a", "")
	n.awaits("a", "ready", "")
	dev := func(name string) string { return fmt.Sprintf(`, "mtu": 1400, "hostDevice": %q`, name) }
	vm, result := n.plug("vm", dev("tap-vm"))
	port := n.awaits("vm", "waiting", "device")
	if port.Host != "tap-vm" || !strings.Contains(port.Waiting, "host interface tap-vm has not appeared yet") {
		t.Errorf("port %+v", port)
	}
	// Another container cannot have it, and the same ADD again is answered.
	n.namespace("other")
	_, err := n.cni("ADD", "other", dev("tap-vm"))
	wantCode(t, "a device that is taken", err, cniapi.CodeConfig, "tap-vm", "vm/eth0")
	_, err = n.cni("ADD", "other", dev("lo"))
	wantCode(t, "loopback as a device", err, cniapi.CodeConfig, "loopback")
	_, err = n.cni("ADD", "vm", dev("tap-else"))
	wantCode(t, "another device", err, cniapi.CodeConfig, "tap-else", "tap-vm")
	if again, err := n.cni("ADD", "vm", dev("tap-vm")); err != nil || address(t, again) != vm {
		t.Errorf("repeated ADD: %v %s", err, again)
	}
	n.until("the Pod is told", func() error {
		if got := n.reasons("tap-vm"); !slices.Contains(got, "NetworkNotReady") {
			return fmt.Errorf("events %v", got)
		}
		return nil
	})
	begun := time.Now()
	n.hostDevice("tap-vm", "vm", result)
	n.awaits("vm", "ready", "")
	t.Logf("ready %v after the device appeared", time.Since(begun))
	n.pings("a", a, vm)
	n.pings("", gw, vm)
	if _, err := n.cni("CHECK", "vm", `, "prevResult": `+string(result)); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	// It goes, and another one comes: the userspace datapath would go on reading from the old one.
	n.deleteLink("tap-vm")
	n.hostDevice("tap-vm", "vm", result)
	n.until("the new device is in use", func() error { return pingable(vm) })
	if l, err := netlink.LinkByName(n.conf.Gateway.Name); err != nil || l.Attrs().MTU != n.conf.MTU {
		t.Errorf("a Pod with a small MTU made the gateway's %d (%v)", l.Attrs().MTU, err)
	}
	n.unplug("vm", "a")
	if _, err := netlink.LinkByName("tap-vm"); err != nil {
		t.Errorf("DEL took the device away: %v", err)
	}
	n.deleteLink("tap-vm")
	// One that never comes is deleted all the same.
	n.plug("never", dev("tap-never"))
	n.unplug("never")
	n.nothingLeft()
}

func TestSyncRefusesALateHostDevice(t *testing.T) {
	n := newNode(t)
	n.startReady()
	n.namespace("vm")
	_, err := n.cni("ADD", "vm", `, "hostDevice": "tap-late"`)
	wantCode(t, "a device that is not there", err, cniapi.CodeInterface, "tap-late", "portReadiness: async")
	_, err = n.cni("ADD", "vm", `, "hostDevice": "name-is-too-long-by-far"`)
	wantCode(t, "a name that no device has", err, cniapi.CodeConfig, "15 characters")
	n.nothingLeft()
}

func (n *node) deleteLink(name string) {
	n.t.Helper()
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func ipNetOf(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
