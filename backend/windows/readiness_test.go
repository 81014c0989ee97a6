package windows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func wantTold(t *testing.T, n *winNode, iface ifstore.Interface, want ...string) {
	t.Helper()
	if got := told(n, iface); !slices.Equal(got, want) {
		t.Errorf("the Pod was told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// OF-1, OF-6: however late the vNIC comes, flows are in about a tick later.
func TestVNICMayComeAnyTime(t *testing.T) {
	for _, wait := range []time.Duration{0, 100 * time.Millisecond, 5 * time.Second, 90 * time.Second, 10 * time.Minute, 2 * time.Hour} {
		t.Run(wait.String(), func(t *testing.T) {
			inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
				iface := add(t, network, "c1")
				after(wait)
				n.vnics.set(iface.Name, true)
				if took := readyWithin(t, network, iface, 2*time.Second); took > 700*time.Millisecond {
					t.Errorf("flows were in %v after the vNIC came, want a tick", took)
				}
				if got := typeChanges(n, iface); !slices.Equal(got, []string{`"internal"`}) {
					t.Errorf("types written: %v", got)
				}
				if got := record(network, iface); got.MAC != iface.MAC || iface.MAC.IsZero() {
					t.Errorf("MAC %v, want the endpoint's, %v", got.MAC, iface.MAC)
				}
				if wait <= 30*time.Second {
					wantTold(t, n, iface, "NetworkReady: flows of interface c1/eth0 are installed on OpenFlow port 1")
				} else {
					wantTold(t, n, iface,
						"NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: host interface vEthernet (PORT) has not appeared yet",
						"NetworkReady: flows of interface c1/eth0 are installed on OpenFlow port 1")
				}
				del(t, network, iface)
				nothingLeft(t, n)
			})
		})
	}
}

// A DEL ends the wait, the listings too.
func TestVNICThatNeverComes(t *testing.T) {
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		after(3 * time.Hour)
		if s, cause := state(network, iface); s != ifstore.StateWaiting || cause != "host interface vEthernet ("+iface.Name+") has not appeared yet" {
			t.Errorf("after three hours: %v, %q", s, cause)
		}
		if got := told(n, iface); len(got) != 1 {
			t.Errorf("told %q, want one event", got)
		}
		if perSecond := float64(n.vnics.count()) / (3 * 3600); perSecond > 2.01 || perSecond < 1 {
			t.Errorf("%.2f listings a second", perSecond)
		}
		del(t, network, iface)
		after(time.Minute) // the wait is forgotten
		before := n.vnics.count()
		after(time.Hour)
		if n.vnics.count() != before {
			t.Errorf("%d listings while nobody waits", n.vnics.count()-before)
		}
		nothingLeft(t, n)
	})
}

// HN-10: one listing a tick for all, and one wake-up for each.
func TestManyPodsShareTheListings(t *testing.T) {
	const pods = 300
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		var ifaces []ifstore.Interface
		for p := range pods {
			ifaces = append(ifaces, add(t, network, fmt.Sprint("c", p)))
		}
		before := n.vnics.count()
		after(5 * time.Minute)
		if got := n.vnics.count() - before; got > 601 {
			t.Errorf("%d listings in 5 minutes for %d Pods, want at most 2 a second", got, pods)
		}
		for _, iface := range ifaces {
			n.vnics.set(iface.Name, true)
		}
		begun := time.Now()
		for _, iface := range ifaces {
			readyWithin(t, network, iface, 2*time.Second)
		}
		if took := time.Since(begun); took > 1500*time.Millisecond {
			t.Errorf("%d Pods were ready after %v", pods, took)
		}
		for _, iface := range ifaces {
			del(t, network, iface)
		}
		nothingLeft(t, n)
	})
}

// A Pod that never comes, one whose switch fails and one in error, for ever.
func TestWaitingPodsDelayNobody(t *testing.T) {
	var broken sync.Map // port -> what is wrong with it
	is := func(port, what string) bool {
		got, _ := broken.Load(port)
		return got == what
	}
	setUp := func(n *winNode) {
		n.opens = func(p podnet.Port) error {
			if is(p.Name, "error") {
				return errors.New("File exists")
			}
			return nil
		}
		n.cfg.LateSteps = []windows.LateStep{{Name: "late step", Run: func(_ context.Context, iface ifstore.Interface, _ hostif.Adapter) error {
			if is(iface.Name, "late step") {
				return errNotNow
			}
			return nil
		}}}
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		add(t, network, "never")
		for _, what := range []string{"error", "late step"} {
			iface := add(t, network, strings.ReplaceAll(what, " ", "-"))
			broken.Store(iface.Name, what)
			n.vnics.set(iface.Name, true)
		}
		after(time.Minute)
		for p := range 50 {
			iface := add(t, network, fmt.Sprint("c", p))
			after(time.Second)
			n.vnics.set(iface.Name, true)
			if took := readyWithin(t, network, iface, 2*time.Second); took > 700*time.Millisecond {
				t.Errorf("Pod %d was ready %v after its vNIC came", p, took)
			}
		}
	})
}

// HN-7, HN-8: what needs the vNIC is done once it is there, in order, and the
// type is switched only when all of it succeeded.
func TestLateStepsComeBeforeTheSwitch(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	var mtuErr error
	call := func(format string, args ...any) error {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, fmt.Sprintf(format, args...))
		return mtuErr
	}
	reset := func(err error) (old []string) {
		mu.Lock()
		defer mu.Unlock()
		old, calls, mtuErr = calls, nil, err
		return old
	}
	setUp := func(n *winNode) {
		first := windows.LateStep{Name: "enable", Run: func(_ context.Context, iface ifstore.Interface, vnic hostif.Adapter) error {
			_ = call("enable %s", vnic.Alias)
			return nil
		}}
		n.cfg.LateSteps = []windows.LateStep{first, windows.MTUStep(func(_ context.Context, vnic hostif.Adapter, mtu int) error {
			return call("mtu %s %d compartment %d", vnic.Alias, mtu, vnic.Compartment)
		})}
		n.Bridge.Before("SetType", func(context.Context) error {
			_ = call("switch")
			return nil
		})
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		refused := errors.New("it was accepted and is still 1500")
		reset(refused)
		request := podnettest.NewRequest("c1")
		request.MTU = 1450
		iface, err := network.Add(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		after(20 * time.Second)
		if calls := reset(refused); len(calls) != 0 {
			t.Fatalf("before the vNIC came: %q", calls)
		}
		n.vnics.set(iface.Name, true)
		after(20 * time.Second)
		if calls := reset(nil); slices.Contains(calls, "switch") {
			t.Errorf("the type was switched although the MTU is not set: %q", calls)
		}
		wantTold(t, n, iface, "NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: set the MTU of host interface vEthernet (PORT): it was accepted and is still 1500")
		readyWithin(t, network, iface, 6*time.Second)
		calls := reset(nil)
		alias := hostif.Alias(iface.Name)
		if want := []string{"enable " + alias, "mtu " + alias + " 1450 compartment 2", "switch"}; !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
	})
}

func TestMTUStepLeavesOutWhatHasNone(t *testing.T) {
	step := windows.MTUStep(func(context.Context, hostif.Adapter, int) error { return errNotNow })
	if err := step.Run(t.Context(), ifstore.Interface{}, hostif.Adapter{}); err != nil {
		t.Error(err)
	}
}

func TestFailedSwitchIsRepeated(t *testing.T) {
	var attempts atomic.Int32
	setUp := func(n *winNode) {
		n.Bridge.Before("SetType", func(context.Context) error {
			if attempts.Add(1) < 10 {
				return fmt.Errorf("set type: %w", podnet.ErrNotConnected)
			}
			return nil
		})
	}
	inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, iface, 30*time.Second)
		if got := typeChanges(n, iface); len(got) != 10 {
			t.Errorf("%d attempts: %v", len(got), got)
		}
	})
}

func TestListThatFailsIsNotAMissingVNIC(t *testing.T) {
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		n.vnics.fail(errors.New("GetAdaptersAddresses: access denied"))
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		after(31 * time.Second)
		wantTold(t, n, iface, "NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: host interface vEthernet (PORT): list host interfaces: GetAdaptersAddresses: access denied")
		n.vnics.fail(nil)
		readyWithin(t, network, iface, 6*time.Second)
	})
}

// OF-1: ovs-vswitchd is stopped; nothing but the number is missing.
func TestNumberMayComeAnyTime(t *testing.T) {
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		n.Bridge.Slow(true)
		iface := add(t, network, "c1")
		n.vnics.set(iface.Name, true)
		after(40 * time.Second)
		wantTold(t, n, iface, "NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: port PORT: no OpenFlow port number yet: Open vSwitch has not opened its host interface")
		after(10 * time.Minute)
		n.Bridge.Slow(false)
		if took := readyWithin(t, network, iface, time.Second); took > 100*time.Millisecond {
			t.Errorf("flows were in %v after the number came", took)
		}
		if got := typeChanges(n, iface); !slices.Equal(got, []string{`"internal"`}) {
			t.Errorf("types written: %v", got)
		}
	})
}

// OF-5: a row with a number proves nothing about the vNIC.
func TestNumberWithoutVNICIsNotTrusted(t *testing.T) {
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		// The look that the new row's name began before the promise stood is over.
		after(time.Millisecond)
		key := podnet.PortKey{Name: iface.Name, Gen: iface.Gen}
		if err := n.Bridge.SetType(t.Context(), key, "internal"); err != nil {
			t.Fatal(err)
		}
		n.Bridge.SetOFPort(iface.Name, 7, "")
		after(time.Minute)
		if s, cause := state(network, iface); s != ifstore.StateWaiting || !strings.Contains(cause, "has not appeared") {
			t.Errorf("%v, %q", s, cause)
		}
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, iface, 2*time.Second)
	})
}

func TestForeignTypeIsLeftAlone(t *testing.T) {
	inWinNode(t, nil, func(t *testing.T, n *winNode, network *podnet.Network) {
		iface := add(t, network, "c1")
		if err := n.Bridge.SetType(t.Context(), podnet.PortKey{Name: iface.Name, Gen: iface.Gen}, "geneve"); err != nil {
			t.Fatal(err)
		}
		n.vnics.set(iface.Name, true)
		after(31 * time.Second)
		wantTold(t, n, iface, `NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: port PORT: somebody set its type to "geneve"; it must be "" or "internal": delete the Pod`)
		if got := typeChanges(n, iface); len(got) != 1 {
			t.Errorf("types written: %v", got)
		}
	})
}

func TestReadinessConforms(t *testing.T) {
	podnettest.TestReadiness(t, func(t *testing.T) podnettest.ReadinessUnderTest {
		n := newWinNode()
		n.cfg.NotReadyAfter = 20 * time.Millisecond
		return podnettest.ReadinessUnderTest{
			Readiness: n.readiness(t), Late: n.cfg.NotReadyAfter,
			Create: func(_ *testing.T, name string) podnet.PortKey {
				n.vnics.set(name, true)
				return n.Bridge.Insert(podnet.Port{PortKey: podnet.PortKey{Name: name}, Type: "internal"})
			},
			Number: func(_ *testing.T, name string, ofport uint32) { n.Bridge.SetOFPort(name, int32(ofport), "") },
			Delete: func(_ *testing.T, name string) { n.Bridge.Remove(name) },
		}
	})
}

func TestReadinessNeedsItsParts(t *testing.T) {
	if _, err := windows.NewReadiness(windows.ReadinessConfig{}); err == nil || !strings.Contains(err.Error(), "needs Rows, Adapters and Listed") {
		t.Errorf("%v", err)
	}
}
