package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// The founding bug of this project: Open vSwitch is busy and gives the number
// later than anybody is ready to wait. ADD does not wait for it, the Pod is
// told, and once Open vSwitch goes on the Pod gets its network by itself.
func TestPodsOutwaitAFrozenSwitch(t *testing.T) {
	n, relay := startBehindRelay(t, asynchronous(nil))
	agent := n.AgentPID()
	peer := n.begin("peer")
	n.becomeReady(peer)

	for _, count := range []int{1, manyPods()} {
		n.freeze()
		began := time.Now()
		pods := n.beginAll(fmt.Sprintf("late%d-", count), count)
		t.Logf("%d ADDs returned after %s with Open vSwitch frozen", count, time.Since(began).Round(time.Millisecond))
		n.areToldNotReady(pods, "number")
		n.stillWaiting(pods...)
		n.untilAge(began, frozenTime)
		agentCPU, switchCPU := n.cpuTime(agent), n.cpuTime(n.Switch.VswitchdPID())
		n.thaw()
		n.becomeReady(pods...)
		n.reportLatency(relay, pods)
		t.Logf("processor time meanwhile: agent %s, ovs-vswitchd %s", n.cpuTime(agent)-agentCPU, n.cpuTime(n.Switch.VswitchdPID())-switchCPU)
		for _, p := range pods {
			n.wantEvents(p, eventNotReady, eventReady)
		}
		n.reachRing(append([]*lab.Pod{peer}, pods...))
		n.regainsGateway(pods[0])
		if err := n.Check(t.Context(), pods[0]); err != nil {
			t.Errorf("CHECK: %v", err)
		}
		n.endAll(pods)
	}
	if n.AgentPID() != agent {
		t.Error("the agent was restarted")
	}
}

// The same with the settings that operators have: 30 s until the Pod is told,
// a switch that stands still for 40 s.
func TestPodOutwaitsAFrozenSwitchWithDefaultSettings(t *testing.T) {
	n := start(t, map[string]any{"portReadiness": "async"})
	peer := n.begin("peer")
	n.becomeReady(peer)
	n.freeze()
	began := time.Now()
	late := n.begin("late")
	n.untilAge(began, 25*time.Second)
	n.wantEvents(late)
	n.areToldNotReady([]*lab.Pod{late}, "number")
	told := n.lastEvent(late).Time.Sub(began)
	if told < 29*time.Second {
		t.Errorf("the Pod was told after %s", told)
	}
	n.untilAge(began, 40*time.Second)
	n.thaw()
	resumed := time.Now()
	n.becomeReady(late)
	t.Logf("NetworkNotReady %s after ADD; NetworkReady %s after Open vSwitch went on",
		told.Round(time.Millisecond), n.lastEvent(late).Time.Sub(resumed).Round(time.Millisecond))
	n.reach(peer, late)
	n.wantEvents(late, eventNotReady, eventReady)
}

// frozenTime is longer than the 5 s after which the agents of old gave up.
const frozenTime = 6 * time.Second

// manyPods is for the scenarios that ask for 300 Pods; the emulated guest has fewer.
func manyPods() int { return min(300, options.pods*3/2) }

func (n *node) freeze() {
	n.t.Helper()
	if err := n.Switch.PauseVswitchd(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) thaw() {
	n.t.Helper()
	if err := n.Switch.ResumeVswitchd(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) lastEvent(p *lab.Pod) lab.PodEvent {
	n.t.Helper()
	last, err := n.lastEvents()
	if err != nil {
		n.t.Fatal(err)
	}
	return last[interfaceOf(p)]
}

// reportLatency prints how long it took from the switch's word that a port is
// live to the switch's word that the Pod's flows are in.
func (n *node) reportLatency(relay *lab.Relay, pods []*lab.Pod) {
	n.t.Helper()
	last, err := n.lastEvents()
	if err != nil {
		n.t.Fatal(err)
	}
	var took []time.Duration
	for _, p := range pods {
		if live, ok := relay.Live(p.HostInterface()); ok {
			took = append(took, last[interfaceOf(p)].Time.Sub(live))
		}
	}
	if len(took) == 0 {
		n.t.Log("no PortStatus came: the switch stood still for so long that the session was given up, and the next one listed the ports")
		return
	}
	slices.Sort(took)
	n.t.Logf("PortStatus to committed flows, %d Pods: median %s, longest %s", len(took),
		took[len(took)/2].Round(time.Millisecond/10), took[len(took)-1].Round(time.Millisecond/10))
}

// cpuTime is the processor time that a process has used. On a machine that is
// busy it tells more than the clock does.
func (n *node) cpuTime(pid int) time.Duration {
	n.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		n.t.Fatal(err)
	}
	// The name in parentheses may hold spaces; utime and stime are fields 14 and 15.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err := errors.Join(err1, err2); err != nil {
		n.t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 everywhere
}
