package uplink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/gateway"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/level"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/internal/ethtool"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
)

// owner marks the device's port; podnet reads every port with the Pods' mark.
const owner = "antrea-lite-uplink"

const (
	moveTime = 20 * time.Second // for one attempt
	rewatch  = time.Second
)

// Config says what is moved.
type Config struct {
	OVS    *vswitch.Client // for the bridge: standalone, on the userspace datapath
	Bridge string          // its name
	State  string          // file of the record
	Period time.Duration   // how often Run looks even if nothing woke it
	// Device names the interface that has the node's addresses, when no record does.
	Device func() (string, error)
}

// Holder finds the one interface with these addresses. That of the bridge counts
// only if no other has them: a move may have ended half-way.
func Holder(addresses []netip.Addr, bridge string) (string, error) {
	link, err := holder(addresses, bridge)
	if err != nil {
		return "", err
	}
	return link.Attrs().Name, nil
}

// Mover keeps the node's device behind Open vSwitch.
type Mover struct {
	conf Config
	loop *level.Loop

	mu     sync.Mutex
	device string        // as found
	known  chan struct{} // closed once device is
}

// New returns a Mover.
func New(conf Config) *Mover {
	return &Mover{conf: conf, loop: level.New(conf.Period), known: make(chan struct{})}
}

// Check returns why the device is not behind Open vSwitch.
func (m *Mover) Check() error {
	err, looked := m.loop.Last()
	if !looked {
		return errors.New("the node's device was not looked at yet")
	}
	return err
}

// Wake asks for another look; it never blocks.
func (m *Mover) Wake() { m.loop.Wake() }

// Run keeps the device moved until ctx ends, and gives it back what it had for as
// long as ovs-vswitchd is down.
func (m *Mover) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.conf.OVS.Run(ctx) })
	group.Go(func() error { return m.watch(ctx, m.conf.Bridge) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-m.known:
		}
		m.mu.Lock()
		device := m.device
		m.mu.Unlock()
		return m.watch(ctx, device)
	})
	group.Go(func() error {
		return m.loop.Run(ctx, m.look, func(err error) {
			if err != nil {
				log.Info("The node's device is not behind Open vSwitch", "why", err)
			} else {
				log.Info("The node's device is behind Open vSwitch", "bridge", m.conf.Bridge)
			}
		})
	})
	return group.Wait()
}

func (m *Mover) watch(ctx context.Context, name string) error {
	for {
		err := gateway.Watch(ctx, name, m.loop.Wake)
		if ctx.Err() != nil {
			return nil
		}
		klog.FromContext(ctx).V(1).Info("Watching an interface anew", "interface", name, "err", err)
		m.loop.Wake()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rewatch):
		}
	}
}

func (m *Mover) look(ctx context.Context) error {
	if err := Recover(ctx, m.conf.State); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, moveTime)
	defer cancel()
	return m.Move(ctx, false, func(r step.Result) {
		if r.Outcome != step.Done {
			klog.FromContext(ctx).Info("Moving the node's device", "step", r.Step, "outcome", r.Outcome, "found", r.Found)
		}
	})
}

// Recorded reports whether a device was moved, or begun to be.
func Recorded(state string) bool {
	_, err := os.Stat(state)
	return err == nil
}

// Recover gives the device back what it had if nobody serves the bridge's interface:
// ovs-vswitchd is down, and the node cut off. It needs nothing but the kernel and
// the record.
func Recover(ctx context.Context, state string) error {
	r, ok, err := load(state)
	if err != nil || !ok {
		return err
	}
	bridge, err := linkByName(r.Bridge)
	if err != nil || served(bridge) {
		return err
	}
	device, err := linkByName(r.Device)
	if err != nil {
		return err
	}
	if device != nil {
		if now, err := snapshot(device); err == nil && !now.lacks(r) {
			return undeafen()
		}
	}
	klog.FromContext(ctx).Info("Nobody serves Open vSwitch's interface; the device gets the node's addresses back", "interface", r.Bridge, "device", r.Device)
	return r.back()
}

// lacks tells whether what a device has now is less than what it had.
func (r Record) lacks(had Record) bool { return r.merge(had) }

// Move moves the device, and tells report of every step. A dry run changes
// nothing. A device that is Open vSwitch's own already is left as it is.
func (m *Mover) Move(ctx context.Context, dry bool, report func(step.Result)) error {
	r, ours, err := m.find(ctx)
	if err != nil || !ours {
		return err
	}
	return step.Run(ctx, m.steps(r), dry, report)
}

// find describes what is to be moved; not ours: somebody has put the node's
// addresses on an interface of Open vSwitch already.
func (m *Mover) find(ctx context.Context) (r Record, ours bool, err error) {
	r, recorded, err := load(m.conf.State)
	if err != nil {
		return r, false, err
	}
	if recorded && r.Bridge != m.conf.Bridge {
		return r, false, fmt.Errorf("traffic.uplinkBridge: %s was moved to %s before: run `antrea-lite restore-uplink`, or name that bridge again", r.Device, r.Bridge)
	}
	name := r.Device
	if !recorded {
		if name, err = m.conf.Device(); err != nil {
			return r, false, err
		}
		if bridge, err := m.conf.OVS.InternalPortOf(ctx, name); err != nil || bridge != "" {
			if bridge != m.conf.Bridge || err != nil {
				return r, false, err
			}
			// The record was lost; the mark on the port says what device it was of.
			port, err := m.ownPort(ctx)
			if err != nil || port.Name == "" {
				return r, false, err
			}
			name = port.Name
		}
	}
	link, err := linkByName(name)
	if err == nil && link == nil {
		err = fmt.Errorf("interface %s is gone", name)
	}
	if err != nil {
		return r, false, err
	}
	now, err := snapshot(link)
	if err != nil {
		return r, false, err
	}
	if recorded {
		r.merge(now)
	} else if r, err = m.first(ctx, now); err != nil {
		return r, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.device == "" {
		m.device = r.Device
		close(m.known)
	}
	return r, true, nil
}

// first checks that a device can be moved and completes its record.
func (m *Mover) first(ctx context.Context, r Record) (Record, error) {
	link, err := linkByName(r.Device)
	if err == nil && link != nil {
		err = movable(link)
	}
	if err != nil {
		return r, err
	}
	bridge, err := m.conf.OVS.BridgeOf(ctx, r.Device)
	if err != nil {
		return r, err
	}
	if bridge != "" && bridge != m.conf.Bridge {
		return r, fmt.Errorf("interface %s cannot be moved to bridge %s: it is on bridge %s: name that with traffic.uplinkBridge, or remove it from there (ovs-vsctl del-port %s %s)",
			r.Device, m.conf.Bridge, bridge, bridge, r.Device)
	}
	r.Bridge = m.conf.Bridge
	if r.GRO, err = ethtool.Get(r.Device, ethtool.GRO); err != nil {
		return r, err
	}
	if have, err := linkByName(m.conf.Bridge); err != nil {
		return r, err
	} else if have != nil && bridge != "" {
		there, err := snapshot(have)
		if err != nil {
			return r, err
		}
		r.merge(there)
	}
	if len(r.Addresses) == 0 {
		return r, fmt.Errorf("interface %s has no address to move", r.Device)
	}
	return r, nil
}

// ownPort is the port of the bridge that has our mark; the zero Port: none has.
func (m *Mover) ownPort(ctx context.Context) (podnet.Port, error) {
	if bridge, err := m.conf.OVS.BridgeOf(ctx, m.conf.Bridge); err != nil || bridge == "" {
		return podnet.Port{}, err
	}
	ports, err := m.conf.OVS.Ports(ctx)
	for _, p := range ports {
		if p.ExternalIDs["podnet-owner"] == owner {
			return p, nil
		}
	}
	return podnet.Port{}, err
}

// Restore undoes Move: the device gets everything back, then bridge and record go.
// It may be repeated.
func (m *Mover) Restore(ctx context.Context) error {
	r, ok, err := load(m.conf.State)
	if err != nil {
		return err
	}
	port, err := m.ownPort(ctx)
	if err == nil && !ok && port.Name != "" {
		r, ok, err = m.find(ctx)
	}
	if err != nil {
		return err
	}
	if ok {
		if err := r.back(); err != nil {
			return err
		}
		if port.Name != "" {
			if err := m.conf.OVS.DeletePort(ctx, port.PortKey); err != nil {
				return err
			}
		}
		if err := m.conf.OVS.DeleteBridge(ctx); err != nil && !errors.Is(err, podnet.ErrPortExists) {
			return err
		}
	}
	if err := os.Remove(m.conf.State); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("record of the uplink: %w", err)
	}
	return nil
}
