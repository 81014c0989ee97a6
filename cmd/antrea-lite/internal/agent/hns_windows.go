package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/prepare"
)

// HNSNetwork is the HNS network as the configuration has it.
func HNSNetwork(conf *config.Config, node config.Node) windows.Network {
	n := windows.Network{Name: conf.HNS.Network, Type: windows.Transparent, Adapter: conf.HNS.Uplink}
	for i, p := range node.PodCIDRs {
		n.Subnets = append(n.Subnets, windows.Subnet{Prefix: p, Gateway: node.Gateways[i]})
	}
	return n
}

// hnsKeeper sees that the HNS network is there. HNS forgets it over a reboot or
// when its service starts anew; with hns.uplink configured it is made again,
// before the CNI configuration is installed. Until then an ADD is told to come again.
type hnsKeeper struct {
	linker    *windows.Linker
	extension prepare.Extension
	wiring    prepare.Wiring
	uplink    string
	period    time.Duration
	hint      string // what an operator can do about a network that is missing; "": the agent makes it

	mu     sync.Mutex
	looked bool
	err    error
}

func newHNSKeeper(a *agent) *hnsKeeper {
	h := &hnsKeeper{linker: a.linker.osLinker, extension: prepare.Extension{Caller: prepare.NewHNS()},
		wiring: prepare.Wiring{Bridge: a.ovs.BridgeOf, Adapters: hostif.List}, uplink: a.conf.HNS.Uplink, period: time.Duration(a.conf.SyncPeriod)}
	if a.conf.HNS.Uplink == "" {
		h.hint = ": run `antrea-lite prepare-node`, or name hns.uplink so that the agent makes the network"
	}
	return h
}

func (h *hnsKeeper) run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	pause := retryMin
	for {
		n, created, err := h.ensure(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch news := h.remember(err); {
		case created:
			log.Info("Made the HNS network", "network", n.Name, "id", n.ID.String(), "uplink", n.Adapter)
		case news && err != nil:
			log.Info("The HNS network is not there yet", "why", err)
		case news:
			log.Info("The HNS network is there", "network", n.Name, "id", n.ID.String())
		}
		next := h.period
		if err != nil {
			next, pause = pause, min(2*pause, retryMax)
		} else {
			pause = retryMin
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// ensure makes what is missing, where it may.
func (h *hnsKeeper) ensure(ctx context.Context) (n windows.Network, created bool, err error) {
	n, created, err = h.linker.EnsureNetwork(ctx)
	if err != nil || h.hint != "" {
		return n, created, err
	}
	on, err := h.extension.Enabled(ctx, n.ID)
	if err == nil && !on {
		err = h.enable(ctx, n)
	}
	return n, created, err
}

// enable enables the extension, unless that would cut the node off.
func (h *hnsKeeper) enable(ctx context.Context, n windows.Network) error {
	ok, found, err := h.wiring.Look(ctx, h.uplink)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("Open vSwitch's extension is disabled in HNS network %q and stays so, as the node would be cut off: %s: see docs/windows.md, Preparing the node", n.Name, found)
	}
	return h.extension.Enable(ctx, n.ID)
}

// remember keeps the outcome and reports whether it differs from the last one.
func (h *hnsKeeper) remember(err error) (news bool) {
	if errors.Is(err, windows.ErrNoNetwork) {
		err = fmt.Errorf("%w%s", err, h.hint)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	news = !h.looked || (err == nil) != (h.err == nil) || err != nil && err.Error() != h.err.Error()
	h.err, h.looked = err, true
	return news
}

// check says whether the network is there and HNS answers.
func (h *hnsKeeper) check() error {
	if s := h.linker.Health(); len(s.Stuck) > 0 {
		return fmt.Errorf("the Host Network Service hangs: %d calls are overdue, the oldest for %s; no more are made of %v until one returns: restart the service hns, or the node",
			s.Overdue, s.Oldest.Round(time.Second), s.Stuck)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.looked {
		return errors.New("the Host Network Service has not answered yet")
	}
	return h.err
}
