package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/gateway"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/nodenet"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
)

// cluster is what Kubernetes adds to an agent. A nil *cluster is an agent that
// stands alone: its methods then do nothing.
type cluster struct {
	self       kube.Node
	pods       *kube.Pods
	nodes      *kube.Nodes
	others     *peerList
	events     *kube.Recorder
	conditions *kube.Conditions
	lifetimes  *kube.Lifetimes
}

// joinCluster asks for this node's ranges and returns the settings that follow
// from them. It waits for the ranges as long as it takes, and tells say why.
func joinCluster(ctx context.Context, conf *config.Config, store *ifstore.Store, version string, say func(error)) (*cluster, config.Node, error) {
	k := conf.Kubernetes
	client, err := kube.Connect(k.Kubeconfig, "antrea-lite/"+version)
	if err != nil {
		return nil, config.Node{}, err
	}
	c := &cluster{}
	if c.self, err = kube.OwnNode(ctx, client, k.NodeName, filepath.Join(conf.StateDir, "node.json"), say); err != nil {
		return nil, config.Node{}, err
	}
	if len(conf.PodCIDRs) > 0 {
		// Somebody else than the controller-manager gives the ranges here.
		klog.FromContext(ctx).Info("Pod ranges come from the configuration, not from the Node", "configured", conf.PodCIDRs, "node", c.self.PodCIDRs)
	} else {
		for _, p := range c.self.PodCIDRs {
			conf.PodCIDRs = append(conf.PodCIDRs, p.String())
		}
	}
	if err := computeMTU(conf, c.self); err != nil {
		return nil, config.Node{}, err
	}
	node, err := conf.Check()
	if err != nil {
		return nil, config.Node{}, fmt.Errorf("with the ranges of Node %s: %w", k.NodeName, err)
	}
	if c.pods, err = kube.NewPods(client, k.NodeName); err != nil {
		return nil, config.Node{}, err
	}
	c.nodes = kube.NewNodes(client, k.NodeName)
	c.others = newPeerList(ctx, peersFile(conf), node.PodCIDRs)
	c.events = kube.NewRecorder(client, k.NodeName)
	if c.conditions, err = kube.NewConditions(client, c.pods, store.ByPod); err != nil {
		return nil, config.Node{}, err
	}
	c.lifetimes, err = kube.NewLifetimes(c.pods)
	return c, node, err
}

// computeMTU sets the MTU that the network between the nodes leaves, unless the
// configuration names one.
func computeMTU(conf *config.Config, self kube.Node) error {
	if conf.MTU != 0 {
		return nil
	}
	uplink, err := nodenet.FindUplink(self.Addresses)
	if err != nil {
		return fmt.Errorf("mtu: %w; or name the MTU of Pods", err)
	}
	tunnel := ""
	if conf.Traffic.Mode == config.Encap {
		tunnel = conf.Traffic.Tunnel
	}
	pod6 := slices.ContainsFunc(self.PodCIDRs, func(p netip.Prefix) bool { return p.Addr().Is6() })
	mtu, err := nodenet.PodMTU(uplink.MTU, nodenet.Overhead(tunnel, outer6(self)), pod6)
	if err != nil {
		return fmt.Errorf("mtu: interface %s: %w", uplink.Name, err)
	}
	conf.MTU = mtu
	return nil
}

// outer6 tells that nodes speak IPv6 to each other: they have nothing else.
func outer6(self kube.Node) bool {
	return len(self.Addresses) > 0 && !self.Address(netip.IPv4Unspecified()).IsValid()
}

// Event implements podnet.Events.
func (c *cluster) Event(ctx context.Context, e podnet.Event) {
	if c == nil {
		return
	}
	c.events.Event(ctx, e)
	c.conditions.Event(ctx, e)
}

// bind returns a context that ends when the Pod has left the API server.
func (c *cluster) bind(ctx context.Context, pod ifstore.Pod) (bound context.Context, stop func()) {
	if c == nil || pod.Name == "" {
		return ctx, func() {}
	}
	return c.lifetimes.Bind(ctx, pod)
}

// fanOut passes events on to both.
type fanOut struct {
	events  *podEvents
	cluster *cluster
}

// Event implements podnet.Events.
func (f fanOut) Event(ctx context.Context, e podnet.Event) {
	f.events.Event(ctx, e)
	f.cluster.Event(ctx, e)
}

// prober is a backend whose interfaces live only as long as their Pods do.
type prober struct {
	nodeLinker
	cluster *cluster
}

func (c *cluster) prober(l nodeLinker) podnet.Linker {
	if c == nil {
		return l
	}
	return prober{l, c}
}

// Alive implements podnet.Prober.
func (p prober) Alive(ctx context.Context, iface ifstore.Interface) (bool, error) {
	// Not every backend can tell: on Windows only the API server does.
	if backend, ok := any(p.nodeLinker).(podnet.Prober); ok {
		if alive, err := backend.Alive(ctx, iface); !alive || err != nil {
			return alive, err
		}
	}
	return p.cluster.alive(ctx, iface)
}

// composeCluster makes what joins this node to the others.
func (a *agent) composeCluster() {
	events := a.cluster.events
	a.metrics.Counter("kubernetes_events_dropped_total", "Events for Pods that were not written because too many waited for the API server.", func() float64 { return float64(events.Dropped()) })
	a.metrics.Counter("kubernetes_events_refused_total", "Events for Pods that the API server refused.", func() float64 { return float64(events.Refused()) })
	encap := a.conf.Traffic.Mode == config.Encap
	a.others = nodenet.New(nodenet.Config{Encap: encap, Outer6: outer6(a.cluster.self), Gateway: a.conf.Gateway.Name, Own: a.node.PodCIDRs, MTU: a.conf.MTU,
		Masquerade: !a.conf.Traffic.NoMasquerade, Period: time.Duration(a.conf.SyncPeriod)}, a.cluster.peers)
	a.keeper.changed = a.others.Wake
	if encap {
		a.keeper.tunnel = newTunnel(a.conf.Traffic.Tunnel, func() []podflows.Peer {
			peers, _ := a.cluster.peers()
			return nodenet.TunnelPeers(peers, outer6(a.cluster.self))
		})
		if a.conf.Datapath == "netdev" {
			a.keeper.tunnel.uplink = func() (nodenet.Uplink, error) { return nodenet.FindUplink(a.cluster.self.Addresses) }
			a.keeper.tunnel.moving = a.conf.Traffic.PrepareUplink
		}
	}
}

// alive adds to what the backend says of an interface whether its Pod has left
// the API server: no DEL comes for a sandbox that the runtime has lost.
func (c *cluster) alive(ctx context.Context, iface ifstore.Interface) (bool, error) {
	if c == nil || iface.Pod.Name == "" || !c.pods.Synced() {
		return true, nil
	}
	gone, err := c.pods.Gone(ctx, iface.Pod)
	return !gone || err != nil, err
}

// feed tells the conditions what becomes of interfaces.
func (c *cluster) feed(ctx context.Context, updates *podnet.Updates) error {
	defer updates.Close()
	for {
		list, err := updates.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow interfaces: %w", err)
		}
		c.conditions.Changed(list)
	}
}

// errMoved ends the agent: everything it made carries the old ranges.
var errMoved = errors.New("the Node has other Pod ranges than when the agent started; it starts anew with them")

// watchSelf ends the agent when its Node was made anew with other ranges.
func (c *cluster) watchSelf(ctx context.Context, woken <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
		}
		now, ok := c.nodes.Self()
		if ok && len(now.PodCIDRs) > 0 && !slices.Equal(now.PodCIDRs, c.self.PodCIDRs) {
			return fmt.Errorf("%w: %v before, %v now", errMoved, c.self.PodCIDRs, now.PodCIDRs)
		}
	}
}

// clusterParts starts the parts that Kubernetes adds.
func (a *agent) clusterParts(part func(string, func(context.Context) error)) error {
	c := a.cluster
	if c == nil {
		return nil
	}
	moved := make(chan struct{}, 1)
	if err := c.nodes.OnChange(func() {
		wake(moved)
		a.others.Wake()
		a.keeper.Wake()
	}); err != nil {
		return err
	}
	part("Pods of the API", c.pods.Run)
	part("Nodes of the API", c.nodes.Run)
	part("own Node", func(ctx context.Context) error { return c.watchSelf(ctx, moved) })
	part("ready file", a.touchReady)
	part("events of the API", c.events.Run)
	part("Pod conditions", c.conditions.Run)
	part("Pod lifetimes", c.lifetimes.Run)
	part("Pod updates", func(ctx context.Context) error { return c.feed(ctx, a.net.Updates()) })
	part("uplink watch", a.watchUplink)
	part("other nodes", func(ctx context.Context) error { return after(ctx, a.keeper.numbered, a.others.Run) })
	return nil
}

// watchUplink looks at the routes to other nodes when the interface that has the
// node's address changes: the kernel drops them when it goes down for a moment.
func (a *agent) watchUplink(ctx context.Context) error {
	for {
		if uplink, err := nodenet.FindUplink(a.cluster.self.Addresses); err == nil && uplink.Name != a.conf.Gateway.Name {
			err = gateway.Watch(ctx, uplink.Name, a.others.Wake)
			klog.FromContext(ctx).V(1).Info("Watching the uplink anew", "err", err)
			a.others.Wake()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryMax):
		}
	}
}

// peers returns the other nodes as last known, and whether the API server has listed them.
func (c *cluster) peers() ([]kube.Node, bool) {
	if !c.nodes.Synced() {
		return c.others.get(), false
	}
	return c.others.set(c.nodes.Peers()), true
}

// shownFaults is how many nodes that cannot be reached are named: in a large
// cluster one broken router makes it hundreds.
const shownFaults = 10

// checkOthers tells which other nodes cannot be reached, and why.
func (a *agent) checkOthers() error {
	faults := slices.Concat(a.others.Faults(), a.cluster.others.leftOut())
	if n := len(faults) - shownFaults; n > 0 {
		faults = append(faults[:shownFaults:shownFaults], fmt.Errorf("and %d more of the kind", n))
	}
	return errors.Join(faults...)
}

// wake puts a token into a channel that holds one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
