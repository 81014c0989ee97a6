package wine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// TestAgentKilled ends the agent by force while one Pod waits, one is wired, one
// is deleted meanwhile, and one loses its endpoint meanwhile; and starts it again.
func TestAgentKilled(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{})
		wired := n.plug("wired", "deleted", "lost", "peer")
		waiting := n.plugWithout("waiting", "meanwhile")
		n.allWired(wired...)
		from, to := wired[0].enter(t), wired[3].enter(t)
		ping := func() error {
			_, err := lab.Ping(from.NS, from.Addr, to.Addr, 56, time.Second)
			return err
		}
		n.eventually("the Pods speak", ping)
		n.kill()

		if err := ping(); err != nil {
			t.Errorf("without the agent: %v", err)
		}
		refused(t, wired[1].del(t.Context()), tryAgain, "agent is not running")
		// The runtime ends the Pod all the same: its namespace goes, its endpoint stays.
		if err := n.hns.Delete(wired[1].namespace); err != nil {
			t.Fatal(err)
		}
		if err := n.hns.Delete(n.hns.Endpoint(wired[2].host).ID()); err != nil {
			t.Fatal(err)
		}
		if err := waiting[1].startContainer(); err != nil {
			t.Fatal(err)
		}

		n.startAgent()
		if err := ping(); err != nil {
			t.Errorf("after the agent's start: %v", err)
		}
		n.allWired(wired[0], wired[3], waiting[1])
		waiting[0].dark(t)
		if err := waiting[0].startContainer(); err != nil {
			t.Fatal(err)
		}
		n.allWired(waiting[0])
		for _, p := range wired[1:3] {
			if err := p.del(t.Context()); err != nil {
				t.Errorf("DEL of %s: %v", p.name, err)
			}
		}
		if err := n.hns.Delete(wired[2].namespace); err != nil {
			t.Error(err)
		}
		n.unplug(wired[0], wired[3], waiting[0], waiting[1])
		n.bareAgain()
	})
}

// TestSwitchRestarted ends Open vSwitch, database and all, under an agent that
// reaches it over named pipes.
func TestSwitchRestarted(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{pipes: true})
		wired := n.plug("a", "b")
		n.allWired(wired...)
		waiting := n.plugWithout("waiting")
		if err := errors.Join(n.sw.KillVswitchd(), n.sw.StopDB()); err != nil {
			t.Fatal(err)
		}
		if err := waiting[0].startContainer(); err != nil {
			t.Fatal(err)
		}
		n.eventually("STATUS says that Open vSwitch is away", func() error {
			if n.status() == nil {
				return errors.New("the agent is ready")
			}
			return nil
		})
		if err := errors.Join(n.sw.StartDB(), n.sw.StartVswitchd()); err != nil {
			t.Fatal(err)
		}
		n.eventually("the agent is ready", n.status)
		n.allWired(wired...)
		n.allWired(waiting...)
		fresh := n.plug("c")
		n.allWired(fresh...)
		n.unplug(slices.Concat(wired, waiting, fresh)...)
		n.bareAgain()
	})
}
