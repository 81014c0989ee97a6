package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// starve lets ovs-vswitchd run for a small part of the time only, as on a node
// that is busy with something else, until the returned function is called.
func (n *node) starve(run, stand time.Duration) (feed func()) {
	n.t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			for _, half := range []struct {
				step func() error
				time.Duration
			}{{n.Switch.PauseVswitchd, stand}, {n.Switch.ResumeVswitchd, run}} {
				if err := half.step(); err != nil {
					n.t.Error(err)
					return
				}
				select {
				case <-done:
					if err := n.Switch.ResumeVswitchd(); err != nil {
						n.t.Error(err)
					}
					return
				case <-time.After(half.Duration):
				}
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// hundred is for the scenarios that ask for 100 Pods; the emulated guest has fewer.
func hundred() int { return min(100, options.pods) }

// ovs-vswitchd gets a tenth of a processor while 100 Pods come (SC-8), half of
// them with devices that others make meanwhile (SC-7). All get their network,
// while it is still starved.
func TestPodsOutwaitAStarvedSwitch(t *testing.T) {
	n := start(t, asynchronous(nil))
	feed := n.starve(10*time.Millisecond, 90*time.Millisecond)
	defer feed()
	began := time.Now()
	pods := n.beginAll("p", hundred()/2)
	promised := n.promiseAll("q", hundred()/2)
	t.Logf("%d ADDs returned after %s", hundred(), time.Since(began).Round(time.Millisecond))
	n.appear(promised...)
	pods = append(pods, promised...)
	n.becomeReady(pods...)
	t.Logf("%d Pods are ready %s after the first ADD began", len(pods), time.Since(began).Round(time.Millisecond))
	n.numbersAgree()
	n.delAll(pods[:len(pods)/4])
	feed()
	n.forget(pods[:len(pods)/4]...)
	pods = pods[len(pods)/4:]
	n.reachRing(pods)
	n.endAll(pods)
}

// Many ADDs find a switch that stands still and callers that do not wait long
// (OF-18). Whatever came of each ADD, DEL takes it away, also the second time,
// whether the switch goes on or not.
func TestManyAddsWithAShortDeadline(t *testing.T) {
	for mode, conf := range map[string]map[string]any{"waiting_in_ADD": nil, "waiting_after_ADD": asynchronous(nil)} {
		t.Run(mode, func(t *testing.T) {
			n := start(t, conf)
			n.freeze()
			pods := make([]*lab.Pod, hundred())
			for i := range pods {
				p, err := n.NewPod(fmt.Sprintf("p%d", i), map[string]any{"timeoutSeconds": 2})
				if err != nil {
					t.Fatal(err)
				}
				pods[i], n.pods[p.Name] = p, p
			}
			var failed sync.Map
			inParallel(len(pods)/2, pods, func(p *lab.Pod) {
				if err := n.Add(t.Context(), p); err != nil {
					failed.Store(p.Name, err)
				}
			})
			count := 0
			failed.Range(func(name, err any) bool {
				if count++; count == 1 {
					t.Logf("%v: %v", name, err)
				}
				return true
			})
			t.Logf("%d of %d ADDs failed", count, len(pods))
			half := pods[:len(pods)/2]
			n.delAll(half)
			n.delAll(half)
			n.thaw()
			n.delAll(pods)
			n.delAll(pods)
			n.onlyLeft()
			n.forget(pods...)
		})
	}
}
