package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// openFlow is the OpenFlow side of the switch, and how an agent reaches it.
type openFlow interface {
	// hear is what vswitchd tells about a port; lost: nobody gets the message.
	hear(name string, port async.PortState, gone, lost bool)
	// freeze stops all answers, or lets them go on.
	freeze(frozen bool)
	// restart loses the flows and the connections.
	restart()
	// drop breaks the connections; reach says whether new ones can be made.
	drop()
	reach(reachable bool)
	// numbers returns on which numbers flows of key stand.
	numbers(key ifstore.Key) []uint32
	// wrong says how the whole table differs from the flows of these interfaces.
	wrong(want map[ifstore.Key]uint32, records []ifstore.Interface) string
	// connect returns what a new agent talks to the switch with.
	connect(inc *incarnation) agentSide
	close()
}

// agentSide is what an agent needs of OpenFlow.
type agentSide struct {
	flows podnet.Flows
	ports podnet.PortTable
	port  func(name string) (async.PortState, bool)
	watch async.Watch
	run   func(ctx context.Context, net *podnet.Network)
}

// listPeriod is how often an agent lists the ports to repair what was lost. It is
// longer than settleTime, so that nothing else relies on it.
const listPeriod = 2 * time.Minute

// fakeSide is podnettest's switch with a session that is made and lost.
type fakeSide struct {
	n     *node
	flows *podnettest.Flows

	mu        sync.Mutex
	ports     map[string]async.PortState // as far as the switch has told
	session   *podnettest.Session        // of the agent of today
	reachable bool
	frozen    bool
	epoch     int           // counts sessions that ended
	changed   chan struct{} // closed and replaced when any of these change
}

func newFakeSide(n *node) *fakeSide {
	f := &fakeSide{n: n, flows: podnettest.NewFlows(), ports: make(map[string]async.PortState), reachable: true, changed: make(chan struct{})}
	f.flows.Away(true)
	f.flows.Every(func(ctx context.Context, call podnettest.FaultCall) error {
		if call.Done {
			return n.hook(ctx, call)
		}
		before := f.state().epoch
		if err := n.hook(ctx, call); err != nil {
			return err
		}
		if f.state().epoch != before && call.Op != "CheckFlows" {
			return fmt.Errorf("the session ended: %w", podnet.ErrNotConnected)
		}
		return nil
	})
	return f
}

type fakeState struct {
	up      bool // connections can be made and hold
	epoch   int
	changed chan struct{}
}

func (f *fakeSide) state() fakeState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fakeState{f.reachable && !f.frozen, f.epoch, f.changed}
}

func (f *fakeSide) change(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeSide) hear(name string, port async.PortState, gone, lost bool) {
	f.mu.Lock()
	switch {
	case !gone:
		f.ports[name] = port
	case f.ports[name].Number == port.Number:
		delete(f.ports, name)
	}
	session := f.session
	f.mu.Unlock()
	if session != nil && !lost {
		session.Tell(name, port, gone)
	}
}

func (f *fakeSide) drop()             { f.change(func() { f.epoch++ }) }
func (f *fakeSide) reach(up bool)     { f.change(func() { f.reachable = up; f.epoch++ }) }
func (f *fakeSide) freeze(still bool) { f.change(func() { f.frozen = still; f.epoch++ }) }
func (f *fakeSide) close()            {}

func (f *fakeSide) restart() {
	f.flows.Lose()
	f.change(func() { f.ports = make(map[string]async.PortState); f.epoch++ })
}

func (f *fakeSide) numbers(key ifstore.Key) []uint32 { return f.flows.Of(key) }

func (f *fakeSide) wrong(want map[ifstore.Key]uint32, _ []ifstore.Interface) string {
	for key, number := range want {
		if on := f.flows.Of(key); len(on) != 1 || on[0] != number {
			return fmt.Sprintf("flows of %s stand on %v, want %d", key, on, number)
		}
	}
	if have := f.flows.Len(); have != len(want) {
		return fmt.Sprintf("flows of %d interfaces stand, want %d", have, len(want))
	}
	return ""
}

func (f *fakeSide) connect(*incarnation) agentSide {
	session := podnettest.NewSession()
	f.mu.Lock()
	f.session = session
	f.mu.Unlock()
	return agentSide{flows: f.flows, ports: session, port: session.Port, watch: session.Watch(),
		run: func(ctx context.Context, net *podnet.Network) { f.run(ctx, net, session) }}
}

// run keeps a session as ofclient does: list, replay, ready; again when it ends.
func (f *fakeSide) run(ctx context.Context, net *podnet.Network, session *podnettest.Session) {
	for ctx.Err() == nil {
		st := f.state()
		if !st.up {
			select {
			case <-st.changed:
			case <-ctx.Done():
			}
			continue
		}
		f.one(ctx, st.epoch, net, session)
		session.End()
		f.flows.Away(true)
		timer := time.NewTimer(100 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// one is one session.
func (f *fakeSide) one(ctx context.Context, epoch int, net *podnet.Network, session *podnettest.Session) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		for {
			st := f.state()
			if st.epoch != epoch {
				cancel()
				return
			}
			select {
			case <-st.changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	f.list(session)
	if err := (checkedFlows{n: f.n}).replay(ctx, net, f.flows.Replay); err != nil || ctx.Err() != nil {
		return
	}
	f.flows.Away(false)
	session.Ready()
	ticker := time.NewTicker(listPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.list(session)
		case <-ctx.Done():
			return
		}
	}
}

func (f *fakeSide) list(session *podnettest.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	session.List(f.ports)
}
