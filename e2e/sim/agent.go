package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/backend/linux"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// agent is one life of the agent: the real code, put together as cmd does.
type agent struct {
	n        *node
	backend  podnet.PortReadiness
	inc      *incarnation
	net      *podnet.Network
	ctx      context.Context // of what runs
	stop     context.CancelFunc
	calls    context.Context // of the runtime's calls, which end before the rest
	stopCall context.CancelFunc
	serving  sync.WaitGroup // the runtime's calls
	running  sync.WaitGroup
}

// startAgent starts an agent; events gets what it tells.
func startAgent(n *node, id int, events *eventLog) (*agent, error) {
	a := &agent{n: n, inc: &incarnation{id: id}}
	base := context.WithValue(klog.NewContext(context.Background(), logr.Discard()), incarnationKey{}, a.inc)
	a.ctx, a.stop = context.WithCancel(base)
	a.calls, a.stopCall = context.WithCancel(base)
	side := n.of.connect(a.inc)
	readiness, err := n.readiness(side)
	if err != nil {
		return nil, err
	}
	store := ifstore.New()
	cfg := podnet.Config{
		Linker: n.linker, Readiness: readiness, Bridge: n.bridge, Addresses: n.addresses, Ports: side.ports, Store: store,
		Flows:  checkedFlows{Flows: side.flows, n: n, records: store, hooks: n.sched.Switch == Client},
		Events: ear{a.inc, events},
	}
	n.change(&cfg)
	a.backend = cfg.Readiness
	a.net, err = podnet.New(cfg)
	if err != nil {
		return nil, err
	}
	n.unknown.atStart(n)
	a.running.Go(func() {
		if err := a.net.Run(a.ctx); err != nil {
			n.breach("Network.Run: %v", err)
		}
	})
	a.running.Go(func() { side.run(a.ctx, a.net) })
	a.running.Go(a.reconcile)
	a.running.Go(func() { events.watch(a) })
	return a, nil
}

// reconcile reads the bridge once in a period, as agents do.
func (a *agent) reconcile() {
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		// An error is for the next time: OVSDB is away.
		_ = a.net.Reconcile(a.ctx)
		select {
		case <-ticker.C:
		case <-a.ctx.Done():
			return
		}
	}
}

// end ends the agent: in order, or as kill -9 does.
func (a *agent) end(kill bool) {
	a.inc.killed.Store(kill)
	a.stopCall()
	if !kill {
		a.serving.Wait()
	}
	a.stop()
	a.serving.Wait()
	a.running.Wait()
}

// readiness makes the backend that the schedule names.
func (n *node) readiness(side agentSide) (podnet.PortReadiness, error) {
	if n.sched.Readiness == Waiting {
		return linux.NewReadiness(linux.ReadinessConfig{Ports: n.bridge, Watches: []async.Watch{side.watch, n.bridge.Watch()}}), nil
	}
	cfg := async.Config{Accept: async.AcceptListed, Ports: side.port, Watches: []async.Watch{side.watch, n.bridge.Watch()}}
	if n.sched.Readiness == Live {
		cfg.Accept, cfg.Prepare = async.AcceptLive, n.appeared
	}
	return async.New(cfg)
}

// appeared is the step before the number: the device is there.
func (n *node) appeared(ctx context.Context, keys []podnet.PortKey) []error {
	errs := make([]error, len(keys))
	devices := n.deviceList()
	for i, key := range keys {
		if errs[i] = n.hook(ctx, podnettest.FaultCall{Op: "Prepare", Subject: key.Name}); errs[i] != nil {
			continue
		}
		if _, ok := devices[key.Name]; !ok {
			errs[i] = fmt.Errorf("host interface %s has not appeared yet", key.Name)
		}
	}
	return errs
}

// knows reports whether the agent has a record of key.
func (a *agent) knows(key ifstore.Key) bool {
	return slices.ContainsFunc(a.net.Interfaces(), func(i ifstore.Interface) bool { return i.Key == key })
}

// ear hears the events of one life of the agent.
type ear struct {
	inc    *incarnation
	events *eventLog
}

// Event implements podnet.Events.
func (e ear) Event(_ context.Context, event podnet.Event) {
	if !e.inc.killed.Load() {
		e.events.told(event, e.inc.id)
	}
}
