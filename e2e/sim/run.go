package sim

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// Result is what a run has shown.
type Result struct {
	Broken []string // rules that did not hold; empty: all is well
	Trace  []string // what happened, by virtual time in seconds
}

// Run plays a schedule in a bubble of its own. It never fails t: a Result says
// what was wrong.
func Run(t *testing.T, s Schedule) Result {
	return RunWith(t, s, func(*podnet.Config) {})
}

// RunWith is Run with parts that are not what they should be: change is called
// for each agent. It shows that the model notices.
func RunWith(t *testing.T, s Schedule, change func(*podnet.Config)) (result Result) {
	var n *node
	defer func() {
		// A bubble in which nothing can go on any more panics here, outside of it.
		if r := recover(); r != nil {
			result = n.result()
			result.Broken = append(result.Broken, fmt.Sprint("panic: ", r))
		}
	}()
	synctest.Test(t, func(*testing.T) {
		n = newNode(s)
		n.change = change
		r := &run{n: n, rt: newRuntime(n), fates: make(map[int]fate), from: make(map[int]int), dead: make(map[int]bool), rowless: make(map[int]bool), lost: make(map[int]bool), crossed: make(map[int]bool)}
		r.events = newEventLog(n, r.rt)
		r.play()
	})
	return n.result()
}

func (n *node) result() Result {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Result{Broken: n.broken, Trace: n.trace}
}

// run is a schedule that is being played.
type run struct {
	n      *node
	rt     *runtime
	events *eventLog
	agent  *agent // nil while there is none
	lives  int
	timers sync.WaitGroup

	fates   map[int]fate // of the containers at the last Settle
	from    map[int]int  // index of the first call since
	dead    map[int]bool // the container died and nobody deleted it
	rowless map[int]bool // somebody deleted the port's row
	lost    map[int]bool // and then the agent ended: the runtime has to delete it
	crossed map[int]bool // the agent ended or the row was replaced in the present life of the port
	slow    bool         // something happened that only what runs once in a period repairs

	db, of, vs outage
}

func (r *run) play() {
	n := r.n
	ctx, cancel := context.WithCancel(context.Background())
	var vs sync.WaitGroup
	vs.Go(func() { n.vs.run(ctx) })
	defer func() {
		cancel()
		vs.Wait()
		r.timers.Wait()
		n.of.close()
	}()
	r.startAgent()
	for _, e := range n.sched.Events {
		time.Sleep(time.Duration(e.After))
		n.log("%s c%d other c%d %s %s %d %v", e.Do, e.C, e.Other, e.Op, e.How, e.Times, time.Duration(e.For))
		r.apply(e)
	}
	r.settle()
	r.clear()
	r.endAgent(false)
}

func (r *run) startAgent() {
	if r.agent != nil {
		return
	}
	r.lives++
	a, err := startAgent(r.n, r.lives, r.events)
	if err != nil {
		r.n.breach("the agent cannot start: %v", err)
		return
	}
	r.agent = a
}

func (r *run) endAgent(kill bool) {
	if r.agent == nil {
		return
	}
	r.rt.agentEnds()
	for c := range r.n.keys {
		r.crossed[c] = true
		// Without its row nothing of it outlives the agent.
		r.lost[c] = r.lost[c] || r.rowless[c]
	}
	begun := time.Now()
	r.agent.end(kill)
	if took := time.Since(begun); took > 25*time.Second {
		r.n.breach("the agent ended after %v", took)
	}
	r.agent = nil
	r.n.of.drop() // its connection
}

// outage is a fault that lasts until something comes back.
type outage struct {
	mu    sync.Mutex
	until time.Time
}

// last makes it last for d from now, then end is called, unless another one of
// its kind lasts longer or it was over before.
func (o *outage) last(timers *sync.WaitGroup, d time.Duration, end func()) {
	until := time.Now().Add(d)
	o.mu.Lock()
	defer o.mu.Unlock()
	if until.Before(o.until) {
		return
	}
	o.until = until
	timers.Go(func() {
		time.Sleep(d)
		o.mu.Lock()
		ended := o.until.Equal(until)
		o.mu.Unlock()
		if ended {
			end()
		}
	})
}

// over makes timers that still run do nothing.
func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = time.Time{}
}

// apply makes an event happen.
func (r *run) apply(e Event) {
	n := r.n
	switch e.Do {
	case Add, AddLate:
		if !r.dead[e.C] {
			r.rt.add(r.agent, e.C, e.Do == AddLate && n.sched.Readiness != Waiting)
		}
	case Del:
		r.del(e.C, callTimeout)
	case DelBriefly:
		r.del(e.C, 500*time.Millisecond)
	case Check:
		r.rt.check(r.agent, e.C)
	case GC:
		r.rt.gc(r.agent)
	case Die:
		if r.rt.quiet(e.C) {
			r.dead[e.C], r.slow = true, true
			n.linker.Kill(n.keys[e.C].ContainerID)
		}
	case DeviceUp:
		n.changeDevice(e.C, func(m map[string]device, name string) { m[name] = device{live: true} })
	case DeviceDown:
		n.changeDevice(e.C, func(m map[string]device, name string) { delete(m, name) })
	case DeviceError:
		n.changeDevice(e.C, func(m map[string]device, name string) { m[name] = device{err: "File exists"} })
	case LiveOn, LiveOff:
		n.changeDevice(e.C, func(m map[string]device, name string) {
			if d, ok := m[name]; ok {
				d.live = e.Do == LiveOn
				m[name] = d
			}
		})
	case Renumber:
		n.vs.renumber(n.name(e.C), "")
	case Steal:
		if e.Other != e.C {
			n.vs.renumber(n.name(e.C), n.name(e.Other))
		}
	case Recreate, RemoveRow:
		r.changeRow(e)
	case SwitchRest:
		n.vs.stop(true)
		n.of.restart()
		n.of.reach(false)
		r.of.last(&r.timers, time.Duration(e.For), func() { n.of.reach(true) })
		r.vs.last(&r.timers, time.Duration(e.For), n.vs.start)
	case SwitchStop:
		n.vs.stop(false)
		n.of.freeze(true)
		r.vs.last(&r.timers, time.Duration(e.For), func() { n.of.freeze(false); n.vs.start() })
	case OFDrop:
		n.of.drop()
	case OFAway:
		n.of.reach(false)
		r.of.last(&r.timers, time.Duration(e.For), func() { n.of.reach(true) })
	case LoseStatus:
		r.slow = true // the next periodic list
		n.vs.loseNext(e.Times)
	case DBAway:
		n.bridge.Away(true)
		r.db.last(&r.timers, time.Duration(e.For), func() { n.bridge.Away(false) })
	case AgentRestart, AgentKill:
		r.endAgent(e.Do == AgentKill)
		time.Sleep(time.Duration(e.For))
		r.startAgent()
	case Fail:
		n.addFault(fault{op: e.Op, c: e.C, how: e.How, times: max(e.Times, 1)})
	case Hang:
		n.addFault(fault{op: e.Op, c: e.C, how: hang, until: time.Now().Add(time.Duration(e.For))})
	case Settle:
		r.settle()
		n.war()
	default:
		n.breach("unknown event %q", e.Do)
	}
}

func (r *run) del(c int, timeout time.Duration) {
	r.rt.del(r.agent, c, timeout)
	// What the sandbox had goes with it.
	r.rowless[c], r.crossed[c] = false, false
}

// changeRow is somebody at work with ovs-vsctl. The container's own calls are
// over: what an ADD makes of a row that vanishes under it is not looked at here.
func (r *run) changeRow(e Event) {
	n := r.n
	if !r.rt.quiet(e.C) || r.dead[e.C] || r.agent != nil && !r.agent.knows(n.keys[e.C]) {
		return
	}
	for _, row := range n.bridge.Rows() {
		if row.Name != n.name(e.C) {
			continue
		}
		n.bridge.Remove(row.Name)
		if e.Do == Recreate {
			row.Gen, row.OFPort, row.Error = "", 0, ""
			n.bridge.Insert(row)
			r.crossed[e.C], r.slow = true, true
		} else {
			r.rowless[e.C], r.lost[e.C] = true, r.agent == nil
		}
		n.vs.poke()
	}
}
