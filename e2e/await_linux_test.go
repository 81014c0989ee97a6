package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// Types of Pod events.
const (
	eventNotReady = "NetworkNotReady"
	eventReady    = "NetworkReady"
)

// asynchronous is the configuration of an agent whose ADD does not wait. Its
// Pods are told after a second that they have no network.
func asynchronous(extra map[string]any) map[string]any {
	conf := map[string]any{"portReadiness": "async", "notReadyAfter": "1s", "retryInterval": "500ms"}
	maps.Copy(conf, extra)
	return conf
}

// begin runs ADD for a new Pod and does not wait for its network.
func (n *node) begin(name string) *lab.Pod {
	n.t.Helper()
	return n.plug(name, nil)
}

// beginAll runs ADD for many new Pods at once.
func (n *node) beginAll(prefix string, count int) []*lab.Pod {
	n.t.Helper()
	pods := make([]*lab.Pod, count)
	for i := range pods {
		p, err := n.NewPod(fmt.Sprintf("%s%d", prefix, i), nil)
		if err != nil {
			n.t.Fatal(err)
		}
		pods[i], n.pods[p.Name] = p, p
	}
	n.addAll(pods)
	return pods
}

// addAll runs ADD for many Pods at once; the test ends when one fails.
func (n *node) addAll(pods []*lab.Pod) {
	n.t.Helper()
	inParallel(callsAtOnce, pods, func(p *lab.Pod) {
		if err := n.Add(n.t.Context(), p); err != nil {
			n.t.Error(err)
		}
	})
	if n.t.Failed() {
		n.t.FailNow()
	}
}

// callsAtOnce is how many calls a scenario about many Pods makes at a time.
const callsAtOnce = 16

// endAll unplugs many Pods at once.
func (n *node) endAll(pods []*lab.Pod) {
	n.t.Helper()
	for _, p := range pods {
		delete(n.pods, p.Name)
	}
	inParallel(callsAtOnce, pods, func(p *lab.Pod) {
		if err := n.Unplug(n.t.Context(), p); err != nil {
			n.t.Error(err)
		}
	})
}

// delAll runs DEL for many Pods at once; their namespaces stay.
func (n *node) delAll(pods []*lab.Pod) {
	n.t.Helper()
	inParallel(callsAtOnce, pods, func(p *lab.Pod) {
		if err := n.Del(n.t.Context(), p); err != nil {
			n.t.Error(err)
		}
	})
}

// forget removes the namespaces of Pods whose DEL the scenario has run itself.
func (n *node) forget(pods ...*lab.Pod) {
	n.t.Helper()
	for _, p := range pods {
		delete(n.pods, p.Name)
		if err := nettest.DeleteNS(p.NetNS); err != nil {
			n.t.Error(err)
		}
	}
}

// portRecord is what `antrea-lite ports` tells of an interface.
type portRecord struct {
	ContainerID, IfName, Host, State, Waiting string
	OFPort                                    int
}

// records asks the agent for its interfaces, by container.
func (n *node) records() (map[string]portRecord, error) {
	out, err := n.Tool(n.t.Context(), "ports", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list []portRecord
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	byContainer := map[string]portRecord{}
	for _, r := range list {
		byContainer[r.ContainerID] = r
	}
	return byContainer, nil
}

// becomeReady waits until every Pod is ready and was told so.
func (n *node) becomeReady(pods ...*lab.Pod) {
	n.t.Helper()
	n.settled(describe(pods)+" become ready", func() error {
		last, err := n.lastEvents()
		for _, p := range pods {
			if e := last[interfaceOf(p)]; err == nil && e.Type != eventReady {
				err = fmt.Errorf("%s: the last event is %q: %s", p.Name, e.Type, e.Message)
			}
		}
		if err != nil {
			return err
		}
		return n.inState("ready", pods)
	})
}

// stillWaiting demands that the Pods wait now.
func (n *node) stillWaiting(pods ...*lab.Pod) {
	n.t.Helper()
	if err := n.inState("waiting", pods); err != nil {
		n.t.Error(err)
	}
}

func (n *node) inState(want string, pods []*lab.Pod) error {
	records, err := n.records()
	for _, p := range pods {
		if r := records[p.ContainerID]; err == nil && r.State != want {
			err = fmt.Errorf("%s is %q, want %q, waiting for %q", p.Name, r.State, want, r.Waiting)
		}
	}
	return err
}

// areToldNotReady waits until every Pod was told that it has no network, and
// until the event, or what the agent tells when it is asked, includes these
// words: what was known when the event was due may have been less.
func (n *node) areToldNotReady(pods []*lab.Pod, words ...string) {
	n.t.Helper()
	n.settled(describe(pods)+" are told that they have no network", func() error {
		last, err := n.lastEvents()
		for _, p := range pods {
			if e := last[interfaceOf(p)]; err == nil && e.Type != eventNotReady {
				err = fmt.Errorf("%s: the last event is %q: %s", p.Name, e.Type, e.Message)
			}
		}
		if err != nil {
			return err
		}
		records, err := n.records()
		for _, p := range pods {
			told := last[interfaceOf(p)].Message + "; " + records[p.ContainerID].Waiting
			for _, w := range words {
				if err == nil && !strings.Contains(told, w) {
					err = fmt.Errorf("%s: %q is not named: %s", p.Name, w, told)
				}
			}
		}
		return err
	})
}

// lastEvents returns the latest event of each interface.
func (n *node) lastEvents() (map[string]lab.PodEvent, error) {
	events, err := n.PodEvents()
	last := map[string]lab.PodEvent{}
	for _, e := range events {
		last[e.Interface] = e
	}
	return last, err
}

// eventsOf returns the types of all events of a Pod, oldest first.
func (n *node) eventsOf(p *lab.Pod) []string {
	n.t.Helper()
	events, err := n.PodEvents()
	if err != nil {
		n.t.Fatal(err)
	}
	var types []string
	for _, e := range events {
		if e.Interface == interfaceOf(p) {
			types = append(types, e.Type)
		}
	}
	return types
}

// wantEvents demands exactly these events of a Pod.
func (n *node) wantEvents(p *lab.Pod, want ...string) {
	n.t.Helper()
	if got := n.eventsOf(p); !slices.Equal(got, want) {
		n.t.Errorf("%s: events %v, want %v", p.Name, got, want)
	}
}

func interfaceOf(p *lab.Pod) string { return p.ContainerID + "/" + p.IfName }

func describe(pods []*lab.Pod) string {
	if len(pods) == 1 {
		return pods[0].Name
	}
	return fmt.Sprintf("%d Pods", len(pods))
}

// reach demands that the Pods reach each other, in each direction and family.
// Like regainsGateway, and for the same reason, it does not judge by one ping.
func (n *node) reach(pods ...*lab.Pod) {
	n.t.Helper()
	for _, a := range pods {
		for _, b := range pods {
			if a != b {
				n.reachOne(a, b)
			}
		}
	}
}

// reachRing demands that each Pod reaches the next one.
func (n *node) reachRing(pods []*lab.Pod) {
	n.t.Helper()
	for i, p := range pods {
		n.reachOne(p, pods[(i+1)%len(pods)])
	}
}

func (n *node) reachOne(from, to *lab.Pod) {
	n.t.Helper()
	for _, v6 := range []bool{false, true} {
		n.settled(from.Name+" reaches "+to.Name, func() error {
			_, err := lab.Ping(from.NetNS, from.Addr(v6), to.Addr(v6), 56, silence)
			return err
		})
	}
}

// untilAge waits until something that began then is that old: the length of a
// disturbance is part of a scenario, nothing is waited for by it.
func (n *node) untilAge(begun time.Time, age time.Duration) {
	n.t.Helper()
	select {
	case <-time.After(time.Until(begun.Add(age))):
	case <-n.t.Context().Done():
		n.t.Fatal("the test ended")
	}
}
