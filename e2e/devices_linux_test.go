package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// notThere is what a Pod is told whose device does not exist yet.
const notThere = "has not appeared yet"

// promise runs ADD for a new Pod whose device somebody else makes, later.
func (n *node) promise(name string) *lab.Pod {
	n.t.Helper()
	return n.plug(name, map[string]any{"hostDevice": "dev-" + name})
}

// promiseAll runs ADD for many such Pods at once.
func (n *node) promiseAll(prefix string, count int) []*lab.Pod {
	n.t.Helper()
	pods := make([]*lab.Pod, count)
	for i := range pods {
		name := fmt.Sprintf("%s%d", prefix, i)
		p, err := n.NewPod(name, map[string]any{"hostDevice": "dev-" + name})
		if err != nil {
			n.t.Fatal(err)
		}
		pods[i], n.pods[name] = p, p
	}
	n.addAll(pods)
	return pods
}

// appear makes the devices of Pods, and removes them with the test: they are
// not the agent's.
func (n *node) appear(pods ...*lab.Pod) {
	n.t.Helper()
	for _, p := range pods {
		if err := p.MakeDevice(); err != nil {
			n.t.Fatal(err)
		}
		n.t.Cleanup(func() { n.vanish(p) })
	}
}

// vanish removes the devices of Pods unless they are gone.
func (n *node) vanish(pods ...*lab.Pod) {
	n.t.Helper()
	for _, p := range pods {
		if err := p.DeleteDevice(); err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) {
			n.t.Errorf("delete the device of %s: %v", p.Name, err)
		}
	}
}

// Devices that others make come at once, late, after a long time or never. Each
// Pod gets its network when its own does, and hears of it.
func TestDevicesThatOthersMakeLater(t *testing.T) {
	n := start(t, asynchronous(nil))
	soon, late, never := n.promise("soon"), n.promise("late"), n.promise("never")
	n.stillWaiting(soon, late, never)
	n.appear(soon)
	n.becomeReady(soon)
	n.areToldNotReady([]*lab.Pod{late, never}, notThere, "dev-")
	n.stillWaiting(late, never)
	n.appear(late)
	appeared := time.Now()
	n.becomeReady(late)
	t.Logf("ready %s after the device appeared", n.lastEvent(late).Time.Sub(appeared).Round(time.Millisecond))
	n.wantEvents(late, eventNotReady, eventReady)
	n.reach(soon, late)
	n.regainsGateway(late)
	for _, p := range []*lab.Pod{soon, late} {
		if err := n.Check(t.Context(), p); err != nil {
			t.Errorf("CHECK %s: %v", p.Name, err)
		}
	}
	n.stillWaiting(never)
	n.wantEvents(never, eventNotReady)
	// DEL takes the port and leaves the device, which belongs to others.
	n.delAll([]*lab.Pod{soon, never})
	if _, err := netlink.LinkByName(soon.HostInterface()); err != nil {
		t.Errorf("DEL removed a device that is not the agent's: %v", err)
	}
	n.onlyLeft(late)
	n.forget(soon, never)
}

// A tap comes late: the far end is a program, a virtual machine's for example.
func TestTapThatComesLater(t *testing.T) {
	n := start(t, asynchronous(nil))
	peer := n.begin("peer")
	n.becomeReady(peer)
	vm := n.promise("vm")
	n.stillWaiting(vm)
	tap, err := lab.MakeTap(vm.HostInterface())
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	n.becomeReady(vm)
	mac, err := vm.MAC()
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := netlink.LinkByName(lab.GatewayName)
	if err != nil {
		t.Fatal(err)
	}
	// Nobody but the gateway may answer, also not the host in its place.
	question := lab.Ethernet(lab.Broadcast(), mac, lab.EthARP, lab.ARP(1, mac, vm.Addr(false), lab.MAC{}, vm.Gateway(false)))
	var answers []string
	n.settled("the gateway answers", func() error {
		if err := tap.Send(question); err != nil {
			return err
		}
		answers = nil
		for deadline := time.Now().Add(silence); ; {
			frame, err := tap.Wait(deadline, func(f []byte) bool { return bytes.Equal(f[:6], mac[:]) && f[12] == 8 && f[13] == 6 })
			if err != nil {
				break
			}
			answers = append(answers, net.HardwareAddr(frame[6:12]).String())
		}
		if len(answers) == 0 {
			return errors.New("no answer")
		}
		return nil
	})
	// More than one when an earlier question was answered late.
	want := gateway.Attrs().HardwareAddr.String()
	if slices.ContainsFunc(answers, func(from string) bool { return from != want }) {
		t.Errorf("answers from %v, want them from %s alone", answers, want)
	}
}

// One Pod whose device never comes delays none of the others (SC-7).
func TestPodThatNeverComesDelaysNobody(t *testing.T) {
	n := start(t, asynchronous(nil))
	never := n.promise("never")
	n.areToldNotReady([]*lab.Pod{never}, notThere)
	pods := n.promiseAll("p", restartPods())
	n.stillWaiting(pods...)
	n.appear(pods...)
	appeared := time.Now()
	n.becomeReady(pods...)
	t.Logf("%d Pods are ready %s after their devices appeared", len(pods), time.Since(appeared).Round(time.Millisecond))
	n.reachRing(pods)
	n.stillWaiting(never)
	n.endAll(pods)
	n.vanish(pods...)
	n.onlyLeft(never)
}

// A Pod that waits is not swept because it waits (RS-19), but it is once its
// sandbox is gone, like any other.
func TestWaitingPodsAreSweptOnlyWithTheirSandbox(t *testing.T) {
	n := start(t, asynchronous(map[string]any{"syncPeriod": "1s"}))
	stays, gone := n.promise("stays"), n.promise("gone")
	delete(n.pods, gone.Name)
	if err := nettest.DeleteNS(gone.NetNS); err != nil {
		t.Fatal(err)
	}
	// That takes two sweeps, which look at the other one, too.
	n.onlyLeft(stays)
	n.stillWaiting(stays)
	n.appear(stays)
	n.becomeReady(stays)
	n.regainsGateway(stays)
}

// The agent and Open vSwitch are restarted while devices are awaited: OVSDB
// says -1 then, which is no number.
func TestRestartsWhileDevicesAreAwaited(t *testing.T) {
	n := start(t, asynchronous(nil))
	pods := n.promiseAll("p", max(5, restartPods()/5))
	n.areToldNotReady(pods, notThere)
	for _, restart := range []func() error{
		func() error { return errors.Join(n.KillAgent(), n.StartAgent(t.Context())) },
		func() error {
			return errors.Join(n.Switch.KillVswitchd(), n.Switch.StartVswitchd(), n.WaitReady(t.Context()))
		},
		func() error {
			return errors.Join(n.KillAgent(), n.Switch.KillVswitchd(), n.Switch.StartVswitchd(), n.StartAgent(t.Context()))
		},
	} {
		if err := restart(); err != nil {
			t.Fatal(err)
		}
		n.stillWaiting(pods...)
		n.numbersAgree()
		first := pods[0]
		pods = pods[1:]
		n.appear(first)
		n.becomeReady(first)
		n.regainsGateway(first)
	}
	n.areToldNotReady(pods, notThere)
	n.appear(pods...)
	n.becomeReady(pods...)
	n.reachRing(pods)
	n.numbersAgree()
}

// A device is deleted and made again, under a Pod that is ready. The kernel
// datapath takes the number away and gives another one. The userspace datapath
// keeps it and goes on listening to the device that is gone, although all it says
// looks well, until the agent has the port opened anew. The Pod gets its network
// back in both.
func TestDeviceIsReplaced(t *testing.T) {
	n := start(t, asynchronous(nil))
	a, b := n.promise("a"), n.promise("b")
	n.appear(a, b)
	n.becomeReady(a, b)
	n.vanish(a)
	if options.datapath == "system" {
		n.areToldNotReady([]*lab.Pod{a}, a.HostInterface())
		n.stillWaiting(a)
		n.numbersAgree()
	}
	n.silent(b.At(false), a.Addr(false))
	n.appear(a)
	n.becomeReady(a)
	n.reach(a, b)
	n.numbersAgree()
	if told := n.eventsOf(a); options.datapath == "system" && !slices.Equal(told[max(0, len(told)-3):], []string{eventReady, eventNotReady, eventReady}) {
		t.Errorf("a: events %v, want %s and %s for the device that went and came", told, eventNotReady, eventReady)
	}
	// And under one that is deleted while its device is away.
	n.vanish(a)
	if err := n.Del(t.Context(), a); err != nil {
		t.Error(err)
	}
	n.forget(a)
	n.onlyLeft(b)
}

// The device goes and comes while ovs-vswitchd is away.
func TestDeviceIsReplacedWhileTheSwitchIsAway(t *testing.T) {
	n := start(t, asynchronous(nil))
	a, b := n.promise("a"), n.promise("b")
	n.appear(a, b)
	n.becomeReady(a, b)
	n.stopSwitch()
	n.vanish(a, b)
	n.appear(b)
	n.startSwitch()
	n.becomeReady(b)
	n.regainsGateway(b)
	n.areToldNotReady([]*lab.Pod{a}, a.HostInterface())
	n.numbersAgree()
	n.appear(a)
	n.becomeReady(a)
	n.reach(a, b)
}
