package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/gateway"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/level"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
)

const (
	// gatewayOwner differs from the Pods' mark: podnet reads every port with that.
	gatewayOwner = "antrea-lite-gateway"

	ensureTime = 20 * time.Second // for one attempt
	// retryMin and retryMax are the pauses of what is watched anew.
	retryMin = 200 * time.Millisecond
	retryMax = 5 * time.Second
)

// keeper keeps the bridge and the gateway as configured: at the start, whenever
// OVSDB, OpenFlow or the kernel tell of a change, and once in a period.
type keeper struct {
	ovs        *vswitch.Client
	flows      *podflows.Installer
	conf       gateway.Config
	bridgeName string
	cidrs      []netip.Prefix
	tunnel     *tunnel // nil: Pods of other nodes are reached through the gateway

	loop     *level.Loop
	changed  func()        // the gateway was made anew, or went down for a moment: its routes are gone; nil: nobody has any
	numbered chan struct{} // closed once the pipeline knows the gateway

	mu     sync.Mutex
	bridge vswitch.BridgeInfo
	info   vswitch.Info
	state  gateway.State
	ofport uint32         // 0: there is no gateway, or nothing is known of it yet
	known  bool           // bridge and gateway have been well once
	node   *podflows.Node // as last set
}

// Wake asks for another look; it never blocks.
func (k *keeper) Wake() { k.loop.Wake() }

// Run looks until ctx ends. An error that waiting cannot cure ends it.
func (k *keeper) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	return k.loop.Run(ctx, k.ensure, func(err error) {
		if err != nil {
			log.Info("Bridge and gateway are not as they have to be yet", "why", err)
		} else {
			log.Info("Bridge and gateway are as they have to be", "gateway", k.conf.Name)
		}
	})
}

// passing tells whether an error of Open vSwitch may go away by waiting.
func passing(err error) bool {
	return errors.Is(err, podnet.ErrNotConnected) || errors.Is(err, podnet.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (k *keeper) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ensureTime)
	defer cancel()
	info, err := k.ovs.Info(ctx)
	if err != nil {
		return err
	}
	if err := OVSTooOld(info); err != nil {
		return level.Permanent(err)
	}
	bridge, err := k.ovs.EnsureBridge(ctx)
	if err != nil {
		if !passing(err) {
			err = level.Permanent(err)
		}
		return err
	}
	ports, err := k.ovs.Ports(ctx)
	if err != nil {
		return err
	}
	if foreign := podnet.AntreaPorts(ports); len(foreign) > 0 {
		return level.Permanent(fmt.Errorf("bridge %s has Pods of another manager, for example port %s: stop that one and delete its bridge, or choose another with --bridge", k.bridgeName, foreign[0]))
	}
	if k.conf.Name == "" {
		k.keep(info, bridge, gateway.State{}, 0)
		return k.tell(ctx, 0, gateway.State{}, podflows.Tunnel{})
	}
	key, err := k.ovs.EnsureInternalPort(ctx, k.conf.Name, gateway.NewMAC(), map[string]string{"podnet-owner": gatewayOwner, "antrea-type": "gateway"})
	if err != nil {
		if errors.Is(err, podnet.ErrPortExists) {
			err = level.Permanent(err)
		}
		return fmt.Errorf("gateway: %w", err)
	}
	if mtuByOVS {
		if err := k.ovs.SetMTURequest(ctx, key, k.conf.MTU); err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
	}
	ofport, err := k.ovs.WaitOFPort(ctx, key)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	found, err := gateway.Look(k.conf.Name)
	if err != nil {
		return err
	}
	end, err := k.ensureTunnel(ctx, ports)
	if err != nil {
		return err
	}
	if err := k.tell(ctx, ofport, found, end); err != nil {
		return err
	}
	state, changed, err := gateway.Apply(k.conf)
	if len(changed) > 0 {
		klog.FromContext(ctx).Info("Changed the gateway", "gateway", k.conf.Name, "changes", changed)
		k.tellChanged()
	}
	if err != nil {
		return err
	}
	k.keep(info, bridge, state, ofport)
	// Its own link-local address, which belongs to the pipeline as well, may have appeared only now.
	return k.tell(ctx, ofport, state, end)
}

func (k *keeper) tellChanged() {
	if k.changed != nil {
		k.changed()
	}
}

// keep remembers what was found, for those who ask.
func (k *keeper) keep(info vswitch.Info, bridge vswitch.BridgeInfo, state gateway.State, ofport uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.info, k.bridge, k.state, k.ofport, k.known = info, bridge, state, ofport, true
}

// tell gives the pipeline gateway and tunnel, when they differ from what it has.
func (k *keeper) tell(ctx context.Context, ofport uint32, state gateway.State, end podflows.Tunnel) error {
	node := podflows.Node{PodCIDRs: k.cidrs, Tunnel: end}
	if ofport != 0 {
		node.Gateway = podflows.Gateway{OFPort: ofport, MAC: state.MAC, Addrs: addrsOf(k.conf.Addresses)}
	}
	for _, p := range state.Addresses {
		if p.Addr().IsLinkLocalUnicast() && p.Addr().Is6() {
			node.Gateway.Addrs = append(node.Gateway.Addrs, p.Addr())
		}
	}
	k.mu.Lock()
	same := k.node != nil && reflect.DeepEqual(*k.node, node)
	k.mu.Unlock()
	if same {
		return nil
	}
	if err := k.flows.SetNode(ctx, node); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	k.mu.Lock()
	first := k.node == nil
	k.node = &node
	k.mu.Unlock()
	if first {
		close(k.numbered)
	}
	return nil
}

// check says whether bridge and gateway are well.
func (k *keeper) check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err, _ := k.loop.Last(); err != nil || k.known {
		return err
	}
	return errors.New("nothing has been heard of Open vSwitch yet")
}

// watch wakes the keeper when the kernel tells of a change of the gateway, or
// when names come from a port watch that are the gateway's.
func (k *keeper) watchKernel(ctx context.Context) error {
	if k.conf.Name == "" {
		return nil
	}
	for {
		err := gateway.Watch(ctx, k.conf.Name, func() {
			k.Wake()
			k.tellChanged()
		})
		if ctx.Err() != nil {
			return nil
		}
		klog.FromContext(ctx).V(1).Info("Watching the gateway anew", "err", err)
		k.Wake()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryMin):
		}
	}
}

// nameWatch is a port watch of OVSDB or OpenFlow.
type nameWatch interface {
	Next(ctx context.Context) ([]string, error)
}

func (k *keeper) watchPort(ctx context.Context, w nameWatch) error {
	for {
		names, err := w.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch the gateway's port: %w", err)
		}
		for _, name := range names {
			if name == k.conf.Name || k.tunnel != nil && name == k.tunnel.port.Name {
				k.Wake()
			}
		}
	}
}
