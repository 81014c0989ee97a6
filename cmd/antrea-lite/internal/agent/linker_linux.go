package agent

import (
	"time"

	"github.com/antrea-lite/podnet/backend/linux"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// osLinker is the platform's backend; podnet looks for more than podnet.Linker in it.
type osLinker = linux.Linker

func newLinker(conf *config.Config) (nodeLinker, error) {
	userspace := conf.Datapath == "netdev"
	linker, err := linux.NewLinker(linux.Config{HostPrefix: conf.HostPrefix, MTU: conf.MTU,
		DisableTXChecksum: userspace, QuietHost: userspace, LateDevices: conf.PortReadiness == config.Async})
	return nodeLinker{linker}, err
}

// readiness waits for the numbers within ADD, or lets ADD return before.
func (a *agent) readiness(linker nodeLinker, store *ifstore.Store) (podnet.PortReadiness, error) {
	if a.conf.PortReadiness != config.Async {
		return linux.NewReadiness(linux.ReadinessConfig{
			Ports: a.ovs, Watches: []linux.NameWatch{a.of.WatchPorts(), a.ovs.WatchOFPorts()}, Describe: portTable{a.of}.describe,
			Queue: async.QueueConfig{MaxRetry: time.Duration(a.conf.RetryInterval)},
		}), nil
	}
	return linux.NewAsyncReadiness(linux.AsyncReadinessConfig{
		Linker: linker.osLinker, Interface: store.ByName, Ports: portTable{a.of}.live, Nudge: a.ovs.Nudge,
		Watches:       []async.Watch{a.of.WatchPorts(), a.ovs.WatchOFPorts()},
		NotReadyAfter: time.Duration(a.conf.NotReadyAfter),
		Queue:         async.QueueConfig{MaxRetry: time.Duration(a.conf.RetryInterval)},
	})
}

// live is what the OpenFlow session last told of a port, for package async.
func (t portTable) live(name string) (async.PortState, bool) {
	p, ok := t.of.Port(name)
	return async.PortState{Number: p.Number, Live: p.State&ofp.PortStateLive != 0}, ok
}
