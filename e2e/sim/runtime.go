package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// callTimeout is the deadline that the runtime gives an ADD or DEL.
const callTimeout = 20 * time.Second

// runtime plays the container runtime: it makes calls and remembers what came
// of them.
type runtime struct {
	n *node

	mu    sync.Mutex
	order int // counts beginnings and ends of calls
	calls map[int][]*call
	swept map[int]int // how many of them were made before the agent swept what a dead container left
}

// call is one ADD or DEL of a container.
type call struct {
	kind         Kind
	begun, ended int // by runtime.order; ended is 0 while it runs
	at           time.Time
	err          error
	cut          bool // its agent ended while it ran, or before what it left was over
}

func newRuntime(n *node) *runtime {
	return &runtime{n: n, calls: make(map[int][]*call), swept: make(map[int]int)}
}

// request is what an ADD of container c asks for. Two neighbours are sandboxes
// of one Pod.
func (n *node) request(c int) podnet.Request {
	req := podnettest.NewRequest(n.keys[c].ContainerID)
	req.Pod = ifstore.Pod{Namespace: "default", Name: "pod-" + string(rune('a'+c/2)), UID: "uid"}
	return req
}

// begin notes a call.
func (r *runtime) begin(c int, kind Kind) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	k := &call{kind: kind, begun: r.order, at: time.Now()}
	r.calls[c] = append(r.calls[c], k)
	return k
}

func (r *runtime) end(c int, k *call, err error) {
	r.n.log("%s c%d ended after %v: %v", k.kind, c, time.Since(k.at), err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	k.ended, k.err = r.order, err
}

// add asks a (nil: there is no agent) for the interface of c.
func (r *runtime) add(a *agent, c int, late bool) {
	if a == nil {
		return // an ADD that reaches nobody changes nothing
	}
	r.n.mu.Lock()
	r.n.late[c] = late
	r.n.mu.Unlock()
	r.n.linker.Revive(r.n.keys[c].ContainerID)
	k := r.begin(c, Add)
	a.serving.Go(func() {
		ctx, cancel := context.WithTimeout(a.calls, callTimeout)
		defer cancel()
		_, err := a.net.Add(ctx, r.n.request(c))
		r.end(c, k, err)
		// The undo of a failed ADD has a time of its own.
		r.inTime(c, k, callTimeout+20*time.Second)
	})
}

// del asks a for the removal of c.
func (r *runtime) del(a *agent, c int, timeout time.Duration) {
	k := r.begin(c, Del)
	if a == nil {
		r.end(c, k, errors.New("no agent"))
		k.cut = true
		return
	}
	a.serving.Go(func() { _ = r.delete(a, c, k, timeout) })
}

func (r *runtime) delete(a *agent, c int, k *call, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(a.calls, timeout)
	defer cancel()
	err := a.net.Delete(ctx, r.n.keys[c])
	if a.inc.killed.Load() && err == nil {
		err = errKilled
	}
	r.end(c, k, err)
	r.inTime(c, k, timeout)
	return err
}

// inTime is the rule that a call ends soon after its deadline.
func (r *runtime) inTime(c int, k *call, limit time.Duration) {
	if took := time.Since(k.at); took > limit+3*time.Second {
		r.n.breach("%s of c%d took %v, its time was over after %v: %v", k.kind, c, took, limit, k.err)
	}
}

// check and gc are calls that change nothing of what is wanted.
func (r *runtime) check(a *agent, c int) {
	if a == nil {
		return
	}
	a.serving.Go(func() {
		ctx, cancel := context.WithTimeout(a.calls, callTimeout)
		defer cancel()
		_ = a.net.Check(ctx, r.n.keys[c]) // faults make it fail; Settle compares more than it does
	})
}

// gc names everything that the runtime has not asked to be removed since it was added.
func (r *runtime) gc(a *agent) {
	if a == nil {
		return
	}
	var valid []ifstore.Key
	r.mu.Lock()
	for c, calls := range r.calls {
		wanted := false
		for _, k := range calls {
			wanted = k.kind == Add || wanted && slices.ContainsFunc(calls, func(add *call) bool { return add.kind == Add && add.meets(k) })
		}
		if wanted {
			valid = append(valid, r.n.keys[c])
		}
	}
	r.mu.Unlock()
	a.serving.Go(func() {
		ctx, cancel := context.WithTimeout(a.calls, callTimeout)
		defer cancel()
		err := a.net.GC(ctx, valid)
		r.n.log("gc ended: %v", err)
	})
}

// agentEnds marks the calls whose rest died with the agent: those that run, and
// those that failed and left something to do.
func (r *runtime) agentEnds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, calls := range r.calls {
		for _, k := range calls {
			k.cut = k.cut || k.ended == 0 || k.err != nil
		}
	}
}

// sweptAway notes that the interface of c ended without a DEL. No call of c is
// running.
func (r *runtime) sweptAway(c int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swept[c] = len(r.calls[c])
}

// quiet reports whether no call of c is running, and whether its interface was
// made by the last one.
func (r *runtime) quiet(c int) (made bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls[c]
	if len(calls) == 0 {
		return false
	}
	for _, k := range calls {
		if k.ended == 0 {
			return false
		}
	}
	last := calls[len(calls)-1]
	return last.kind == Add && last.err == nil
}
