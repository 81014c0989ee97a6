package agent

import (
	"context"
	"time"

	"github.com/antrea-lite/podnet/backend/linux"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// osLinker is the platform's backend; podnet looks for more than podnet.Linker in it.
type osLinker = linux.Linker

func (a *agent) newLinker() (nodeLinker, error) {
	conf := a.conf
	userspace := conf.Datapath == "netdev"
	linker, err := linux.NewLinker(linux.Config{HostPrefix: conf.HostPrefix, MTU: conf.MTU,
		DisableTXChecksum: userspace, QuietHost: userspace, LateDevices: conf.PortReadiness == config.Async})
	return nodeLinker{linker}, err
}

// readiness waits for the numbers within ADD, or lets ADD return before.
func (a *agent) readiness(store *ifstore.Store) (podnet.PortReadiness, error) {
	if a.conf.PortReadiness != config.Async {
		return linux.NewReadiness(linux.ReadinessConfig{
			Ports: a.ovs, Watches: []async.Watch{a.of.WatchPorts(), a.ovs.WatchOFPorts()}, Describe: portTable{a.of}.describe,
			Queue: async.QueueConfig{MaxRetry: time.Duration(a.conf.RetryInterval)},
		}), nil
	}
	var reopen func(context.Context, podnet.PortKey) error
	if a.conf.Datapath == "netdev" {
		reopen = a.ovs.Reopen
	}
	return linux.NewAsyncReadiness(linux.AsyncReadinessConfig{
		OFPort: a.ovs.OFPort, Reopen: reopen,
		Linker: a.linker.osLinker, Interface: store.ByName, Ports: portTable{a.of}.listed, Nudge: a.ovs.Nudge,
		Watches:       []async.Watch{a.of.WatchPorts(), a.ovs.WatchOFPorts()},
		NotReadyAfter: time.Duration(a.conf.NotReadyAfter),
		Queue:         async.QueueConfig{MaxRetry: time.Duration(a.conf.RetryInterval)},
	})
}

// hostParts are the parts that only this platform has.
func (a *agent) hostParts() ([]hostPart, error) { return nil, nil }

// newPods returns podnet as it is: on Linux every container that asks has a namespace of its own.
func newPods(n *podnet.Network) pods { return direct{n} }

type direct struct{ *podnet.Network }

// Delete implements pods. A DEL needs no namespace; often it is gone.
func (d direct) Delete(ctx context.Context, key ifstore.Key, _ string) error {
	return d.Network.Delete(ctx, key)
}

// CheckAgainst implements pods. The same namespace may be given by another path.
func (d direct) CheckAgainst(ctx context.Context, key ifstore.Key, want podnet.Want) error {
	want.NetNS = ""
	return d.Network.CheckAgainst(ctx, key, want)
}
