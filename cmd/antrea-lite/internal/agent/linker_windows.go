package agent

import (
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// osLinker is the platform's backend; podnet looks for more than podnet.Linker in it.
type osLinker = windows.Linker

func (a *agent) newLinker() (nodeLinker, error) {
	linker, err := windows.NewLinker(windows.Config{
		HNS: windows.NewHCN(), Network: HNSNetwork(a.conf, a.node), HostPrefix: a.conf.HostPrefix, MTU: a.conf.MTU,
		ObserveCall: func(c windows.Call) { a.metrics.HNSCall(string(c.Op), c.Err, c.Left, c.Duration) },
	})
	return nodeLinker{osLinker: linker}, err
}

// readiness waits for the numbers after ADD has answered: a Pod's vNIC appears
// only with its container.
func (a *agent) readiness(*ifstore.Store) (podnet.PortReadiness, error) {
	conf := windows.ReadinessConfig{
		Rows: a.ovs, Adapters: hostif.List, Listed: portTable{a.of}.listed,
		Watches:       []async.Watch{a.of.WatchPorts(), a.ovs.WatchOFPorts()},
		Endpoints:     a.linker.Endpoints,
		NotReadyAfter: time.Duration(a.conf.NotReadyAfter),
		Queue:         async.QueueConfig{MaxRetry: time.Duration(a.conf.RetryInterval)},
	}
	mtu, err := hostif.NewMTUSetter()
	switch {
	case err == nil:
		conf.LateSteps = append(conf.LateSteps, windows.MTUStep(mtu.SetMTU))
	case errors.Is(err, errors.ErrUnsupported):
		klog.Background().Error(err, "The MTU of Pods' interfaces is left as Windows chooses it")
	default:
		return nil, err
	}
	return windows.NewReadiness(conf)
}

// newPods puts before podnet what knows that a Pod's other containers ask, too.
func newPods(n *podnet.Network) pods { return windows.NewSandboxes(n) }

// earlyParts are the parts that run before the Node is known; there are none.
func (a *agent) earlyParts() ([]hostPart, error) { return nil, nil }

// hostParts are the parts that only this platform has.
func (a *agent) hostParts() ([]hostPart, error) {
	h := newHNSKeeper(a)
	auditor, err := windows.NewAuditor(windows.AuditorConfig{
		Linker: a.linker.osLinker, Interfaces: a.net.Interfaces, Events: fanOut{a.events, a.cluster}, Period: time.Duration(a.conf.SyncPeriod),
	})
	// What the auditor finds is a Pod's trouble, not the node's: it has no check.
	return []hostPart{{name: "HNS network", run: h.run, check: h.check}, {name: "HNS endpoints", run: auditor.Run}}, err
}
