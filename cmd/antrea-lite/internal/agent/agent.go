package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/cniserver"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/gateway"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/health"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/ipam"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/level"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/metrics"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/nodenet"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/single"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
)

// agent is one running agent. Its fields are set before any part runs.
type agent struct {
	conf    *config.Config
	node    config.Node
	version string
	started time.Time

	metrics *metrics.Metrics
	health  *health.Health
	leases  *ipam.Manager
	ovs     *vswitch.Client
	of      *ofclient.Client
	flows   *podflows.Installer
	linker  nodeLinker
	net     *podnet.Network
	keeper  *keeper
	store   *ifstore.Store
	cluster *cluster        // nil: the agent stands alone
	others  *nodenet.Keeper // nil: likewise
	events  *podEvents
	host    []hostPart
	early   []hostPart    // run before the Node is known
	joined  chan struct{} // closed once it is

	restored atomic.Bool   // the interfaces of the bridge are known
	dbWake   chan struct{} // one token: OVSDB came (back)
	ofWake   chan struct{} // one token: a new OpenFlow session is ready
}

// Run runs the agent until ctx ends, which is a success, or a part fails. The
// configuration must have been checked; node is what Check returned.
func Run(ctx context.Context, conf *config.Config, node config.Node, version string) (err error) {
	if err := CheckHost(); err != nil {
		return err
	}
	lock, err := single.Acquire(conf.LockFile())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	listener, err := listen(conf.CNISocket)
	if err != nil {
		return fmt.Errorf("cniSocket: %w", err)
	}
	defer listener.Close()
	var page net.Listener
	if conf.MetricsAddress != "" {
		if page, err = net.Listen("tcp", conf.MetricsAddress); err != nil {
			return fmt.Errorf("metricsAddress: %w: end the process that has the port, or choose another", err)
		}
		defer page.Close()
	}
	a := &agent{conf: conf, node: node, version: version, started: time.Now(), metrics: metrics.New(version), store: ifstore.New(),
		joined: make(chan struct{}), dbWake: make(chan struct{}, 1), ofWake: make(chan struct{}, 1)}
	return a.run(ctx, listener, page)
}

// hostPart is a part that only one platform has.
type hostPart struct {
	name  string
	run   func(context.Context) error
	check func() error // nil: nothing to say about the node
	wake  func()       // of an early part: the Node is known now
}

func ranges(node config.Node) []ipam.Range {
	out := make([]ipam.Range, len(node.PodCIDRs))
	for i, p := range node.PodCIDRs {
		out[i] = ipam.Range{Prefix: p, Gateway: node.Gateways[i]}
	}
	return out
}

// make joins the cluster, if there is one, and makes the parts, with what the Node
// says; nothing runs yet.
func (a *agent) make(ctx context.Context, joining *joining) (err error) {
	if a.conf.Kubernetes.NodeName != "" {
		if a.cluster, a.node, err = joinCluster(ctx, a.conf, a.store, a.version, joining.say); err != nil {
			return err
		}
	}
	close(a.joined)
	for _, h := range a.early {
		h.wake()
	}
	if a.leases, err = ipam.New(ctx, ipam.Config{Dir: a.conf.StateDir, Network: a.conf.Bridge, Ranges: ranges(a.node), BootID: bootID()}); err != nil {
		return err
	}
	return a.compose()
}

// compose makes the parts and connects them.
func (a *agent) compose() (err error) {
	a.events = newPodEvents(a.metrics)
	db := OVSDB(a.conf)
	db.Observer = wakeOnConnect{a.metrics.OVSDB(), a.dbWake}
	if a.ovs, err = vswitch.New(db); err != nil {
		return err
	}
	if a.of, err = ofclient.New(ofclient.Config{Dial: OpenFlow(a.conf), Replay: a.replay, ListPeriod: time.Duration(a.conf.SyncPeriod), Observer: wakeOnReady(a.metrics.OpenFlow(), a.ofWake)}); err != nil {
		return err
	}
	if a.flows, err = podflows.New(podflows.Config{Sender: a.of, Node: podflows.Node{PodCIDRs: a.node.PodCIDRs}}); err != nil {
		return err
	}
	if a.linker, err = a.newLinker(); err != nil {
		return err
	}
	readiness, err := a.readiness(a.store)
	if err != nil {
		return err
	}
	a.net, err = podnet.New(podnet.Config{
		Linker: a.cluster.prober(a.linker), Readiness: readiness,
		Bridge: a.ovs, Flows: a.flows, Addresses: a.leases, Ports: portTable{a.of},
		Store: a.store, Events: fanOut{a.events, a.cluster}, Observer: a.metrics.Network(a.conf.PortReadiness),
		NotReadyAfter: time.Duration(a.conf.NotReadyAfter), RetryInterval: time.Duration(a.conf.RetryInterval), SweepInterval: time.Duration(a.conf.SyncPeriod),
	})
	if err != nil {
		return err
	}
	a.metrics.Interfaces(a.net.Interfaces)
	a.metrics.Waits(a.net.Waits)
	addresses := make([]netip.Prefix, len(a.node.PodCIDRs))
	for i, p := range a.node.PodCIDRs {
		addresses[i] = netip.PrefixFrom(a.node.Gateways[i], p.Bits())
	}
	a.keeper = &keeper{ovs: a.ovs, flows: a.flows, bridgeName: a.conf.Bridge, cidrs: a.node.PodCIDRs, loop: level.New(time.Duration(a.conf.SyncPeriod)),
		conf:     gateway.Config{Name: a.conf.Gateway.Name, MTU: a.conf.MTU, Addresses: addresses},
		numbered: make(chan struct{})}
	if a.cluster != nil {
		a.composeCluster()
	}
	if a.host, err = a.hostParts(); err != nil {
		return err
	}
	parts := []health.Part{
		{Name: "ovsdb", Check: a.checkOVSDB, Remedy: remedyOVS},
		{Name: "gateway", Check: a.keeper.check, Limits: true, Remedy: remedyOVS},
		{Name: "interfaces", Check: a.Started, Remedy: remedyOVS},
		{Name: "openflow", Check: a.checkOpenFlow, Limits: true, Remedy: remedyOVS},
	}
	if a.cluster != nil {
		// A node that cannot be reached is no reason to take no Pods here.
		parts = append(parts, health.Part{Name: "other nodes", Check: a.checkOthers, Advises: true, Remedy: "the agent looks again every few seconds"})
	}
	for _, h := range slices.Concat(a.host, a.early) {
		if h.check != nil {
			parts = append(parts, health.Part{Name: h.name, Check: h.check, Remedy: remedyOVS})
		}
	}
	a.health = health.New(parts...)
	return nil
}

// replay brings a new OpenFlow session to the state of the node.
func (a *agent) replay(ctx context.Context, conn *ofclient.Conn) error {
	return a.net.Replay(ctx, func(ctx context.Context, ifaces []ifstore.Interface) error {
		return a.flows.Replay(ctx, conn, ifaces)
	})
}

// restore learns the interfaces of the bridge when OVSDB is there, again
// whenever it comes back, and once in a period: somebody may have replaced a port.
func (a *agent) restore(ctx context.Context) error {
	log := klog.FromContext(ctx)
	return after(ctx, a.keeper.numbered, func(ctx context.Context) error {
		for {
			err := a.net.Reconcile(ctx)
			if err == nil && !a.restored.Load() {
				// Leases may be lost while Pods live on; what Pods have must not be given out again.
				if err := a.leases.Adopt(ctx, a.net.Interfaces()); err != nil {
					log.Error(err, "Not every address of a restored Pod could be reserved")
				}
				a.restored.Store(true)
			}
			again := time.Duration(a.conf.SyncPeriod)
			if err != nil {
				log.V(1).Info("The interfaces cannot be read yet", "err", err)
				again = retryMin
			}
			select {
			case <-ctx.Done():
				return nil
			case <-a.dbWake:
				a.keeper.Wake()
			case <-time.After(again):
			}
		}
	})
}

// announce installs the CNI configuration file once the agent is ready, and again
// when somebody took it away: without it the node takes no Pods. What somebody
// changed in it stays until the agent starts anew.
func (a *agent) announce(ctx context.Context, conf *cniConf) error {
	tick := time.NewTicker(retryMin)
	defer tick.Stop()
	for a.health.Ready() != nil || a.others != nil && !a.others.Looked() {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	if err := conf.install(); err != nil {
		return err
	}
	return level.New(confPeriod).Run(ctx, func(context.Context) error { return conf.restore(ctx) }, func(err error) {
		if err != nil {
			klog.FromContext(ctx).Error(err, "The CNI configuration file is gone and cannot be written")
		}
	})
}

// pageHandler serves the pages on loopback.
func (a *agent) pageHandler(h *health.Health) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	mux.HandleFunc("GET /healthz", h.Healthz)
	mux.HandleFunc("GET /readyz", h.Readyz)
	return mux
}

// socketHandler serves the CNI verbs and the questions of the sub-commands.
func (a *agent) socketHandler() http.Handler {
	mux := http.NewServeMux()
	cniserver.New(cniserver.Config{Network: &cniNetwork{net: a.net, pods: newPods(a.net), cluster: a.cluster}, Gate: a, Observe: a.metrics.Call}).Register(mux)
	a.registerQueries(mux)
	return mux
}

// wakeOnConnect tells of a new OVSDB connection, too.
type wakeOnConnect struct {
	vswitch.Observer
	wake chan struct{}
}

// Connected implements vswitch.Observer.
func (w wakeOnConnect) Connected(current bool) {
	w.Observer.Connected(current)
	if current {
		wake(w.wake)
	}
}
