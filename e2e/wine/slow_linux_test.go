package wine

import (
	"fmt"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
)

// TestFrozenSwitchForAMinute is the bug that podnet was made for: the vNICs are
// there, and Open vSwitch on a starved node gives them no numbers for longer
// than anybody waits. The Pods are told of, and wired in the end by themselves.
func TestFrozenSwitchForAMinute(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{pipes: true})
		before := n.plug("before")
		n.allWired(before...)
		if err := n.sw.PauseVswitchd(); err != nil {
			t.Fatal(err)
		}
		frozen := time.Now()
		pods := n.plug("a", "b", "c") // ADD answers all the same
		const minute = time.Minute
		n.within(minute, "the Pods are told of", func() error {
			for _, p := range pods {
				if err := p.told(notReady, "OpenFlow"); err != nil {
					return err
				}
			}
			return nil
		})
		t.Logf("told of %v after the switch froze", time.Since(frozen).Round(time.Second))
		<-time.After(minute - time.Since(frozen))
		if err := n.sw.ResumeVswitchd(); err != nil {
			t.Fatal(err)
		}
		thawed := time.Now()
		n.allWired(pods...)
		t.Logf("wired %v after it went on", time.Since(thawed).Round(100*time.Millisecond))
		for _, p := range pods {
			n.eventually(p.name+" is told ready", func() error { return p.told(ready) })
		}
		n.unplug(append(pods, before...)...)
		n.bareAgain()
	})
}

// TestVNICLateAndNever: one Pod's container starts after 90 s, another's never does.
func TestVNICLateAndNever(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{})
		begin := time.Now()
		pods := n.plugWithout("late", "never")
		late, never := pods[0], pods[1]
		if err := n.hns.SetState(n.hns.Endpoint(never.host).ID(), fakehns.StateSharing); err != nil {
			t.Fatal(err)
		}
		n.eventually("both are told of", func() error {
			if err := late.told(notReady, fmt.Sprintf("vEthernet (%s)", late.host)); err != nil {
				return err
			}
			return never.told(notReady, "state 3")
		})
		late.dark(t)
		<-time.After(90*time.Second - time.Since(begin))
		late.dark(t)
		if err := late.startContainer(); err != nil {
			t.Fatal(err)
		}
		n.allWired(late)
		n.eventually("late is told ready", func() error { return late.told(ready) })
		never.dark(t)
		n.unplug(pods...)
		n.bareAgain()
	})
}

// TestFiftyPodsAtOnce with containers that start in another order than ADD's.
func TestFiftyPodsAtOnce(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{})
		names := make([]string, 50)
		for i := range names {
			names[i] = fmt.Sprintf("p%02d", i)
		}
		begin := time.Now()
		pods := n.plugWithout(names...)
		added := time.Since(begin)
		for i := range pods {
			if err := pods[(i*7)%len(pods)].startContainer(); err != nil {
				t.Fatal(err)
			}
		}
		n.allWired(pods...)
		t.Logf("50 ADDs in %v, wired %v after the first began", added.Round(100*time.Millisecond), time.Since(begin).Round(100*time.Millisecond))
		n.unplug(pods...)
		n.bareAgain()
		if h := n.hns.OpenHandles(); h != 0 {
			t.Errorf("%d handles of HNS are open", h)
		}
	})
}
