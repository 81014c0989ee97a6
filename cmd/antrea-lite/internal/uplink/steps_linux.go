package uplink

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/ethtool"
	"github.com/antrea-lite/podnet/podnet"
)

// lookAgain is how often the kernel is asked for what ovs-vswitchd makes.
const lookAgain = 20 * time.Millisecond

// steps are those that move what r describes, in an order in which the node is
// reachable between any two: until the bridge's interface has everything, the
// device has it, too.
func (m *Mover) steps(r Record) []step.Step {
	return []step.Step{{
		Name: "Record of " + r.Device,
		Look: func(context.Context) (bool, string, error) {
			have, ok, err := load(m.conf.State)
			return ok && reflect.DeepEqual(have, r), m.conf.State, err
		},
		Do:    func(context.Context) error { return r.save(m.conf.State) },
		Would: fmt.Sprintf("write down %d addresses and %d routes in %s, to give them back", len(r.Addresses), len(r.Routes), m.conf.State),
	}, {
		Name: "Bridge " + r.Bridge,
		Look: func(ctx context.Context) (bool, string, error) {
			bridge, err := m.conf.OVS.BridgeOf(ctx, r.Bridge)
			return bridge == r.Bridge, found(bridge != "", "there", "there is none"), err
		},
		Do: func(ctx context.Context) error {
			_, err := m.conf.OVS.EnsureBridge(ctx)
			return err
		},
		Would: "make a bridge of datapath_type netdev that switches by itself",
	}, {
		Name: r.Device + " on " + r.Bridge,
		Look: func(ctx context.Context) (bool, string, error) {
			bridge, err := m.conf.OVS.BridgeOf(ctx, r.Device)
			return bridge == r.Bridge, found(bridge != "", "there", "on no bridge"), err
		},
		Do: func(ctx context.Context) error {
			key, err := m.conf.OVS.AddPort(ctx, podnet.Port{PortKey: podnet.PortKey{Name: r.Device},
				ExternalIDs: map[string]string{"podnet-owner": owner, "antrea-type": "uplink"}})
			if err == nil {
				_, err = m.conf.OVS.WaitOFPort(ctx, key)
			}
			return err
		},
		Would: fmt.Sprintf("make %s a port of %s", r.Device, r.Bridge),
	}, {
		Name: "Packets as they were received",
		Look: func(context.Context) (bool, string, error) {
			on, err := ethtool.Get(r.Device, ethtool.GRO)
			return !on, found(on, "gro on", "gro off"), err
		},
		Do:    func(context.Context) error { return ethtool.Set(r.Device, ethtool.GRO, false) },
		Would: fmt.Sprintf("ethtool -K %s gro off: Open vSwitch drops what is larger than the MTU", r.Device),
	}, {
		Name: "Interface " + r.Bridge,
		Look: func(context.Context) (bool, string, error) { return r.bridgeLink() },
		Do: func(ctx context.Context) error {
			mac, err := ifstore.ParseMAC(r.MAC)
			if err == nil {
				err = m.conf.OVS.SetHWAddr(ctx, mac)
			}
			if err != nil {
				return err
			}
			return r.setUpBridge(ctx)
		},
		Would: fmt.Sprintf("give it %s, wait until it has MTU %d from Open vSwitch, and bring it up; if that fails, see that ovs-vswitchd runs, and that only %s is on the bridge",
			r.MAC, r.MTU, r.Device),
	}, {
		Name:  "Addresses and routes",
		Look:  func(context.Context) (bool, string, error) { return r.moved() },
		Do:    func(context.Context) error { return r.move() },
		Would: fmt.Sprintf("move them from %s to %s: %v", r.Device, r.Bridge, r.list()),
	}, {
		Name: r.Device + " is Open vSwitch's alone",
		Look: func(context.Context) (bool, string, error) {
			quiet, err := deaf()
			return quiet, found(quiet, "the kernel ignores what it receives", "the kernel takes what it receives, too"), err
		},
		Do:    func(context.Context) error { return deafen(r.Device) },
		Would: "make nftables' table netdev " + tableName + ", which drops what the kernel would take a second time",
	}}
}

func found(yes bool, then, otherwise string) string {
	if yes {
		return then
	}
	return otherwise
}

func (r Record) list() (out []string) {
	for _, a := range r.Addresses {
		out = append(out, a.Prefix.String())
	}
	for _, route := range r.Routes {
		out = append(out, fmt.Sprintf("%s via %s", route.Dst, route.Gateway))
	}
	return out
}

// bridgeLink tells whether the bridge's interface can take the device's place.
func (r Record) bridgeLink() (ok bool, what string, err error) {
	link, err := linkByName(r.Bridge)
	if err != nil || link == nil {
		return false, "there is none", err
	}
	a := link.Attrs()
	what = fmt.Sprintf("%s, MTU %d, flags %s", a.HardwareAddr, a.MTU, a.Flags)
	return a.HardwareAddr.String() == r.MAC && a.MTU == r.MTU && served(link), what, nil
}

// served tells whether a bridge's interface is up and has somebody who takes its
// packets. One of an ovs-vswitchd that was killed stays, without a carrier.
func served(link netlink.Link) bool {
	return link != nil && link.Attrs().RawFlags&unix.IFF_LOWER_UP != 0
}

// setUpBridge waits for what ovs-vswitchd does after the database says so: it
// makes the interface and gives it its MAC, and the MTU of its one other port.
func (r Record) setUpBridge(ctx context.Context) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		link, err := linkByName(r.Bridge)
		if err != nil {
			return err
		}
		if link != nil && link.Attrs().HardwareAddr.String() == r.MAC {
			if err := netlink.LinkSetUp(link); err != nil {
				return fmt.Errorf("bring %s up: %w", r.Bridge, err)
			}
			if ok, _, err := r.bridgeLink(); ok || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			_, what, _ := r.bridgeLink()
			return fmt.Errorf("it does not become as it has to be: %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// both returns the device and the bridge's interface.
func (r Record) both() (device, bridge netlink.Link, err error) {
	if device, err = linkByName(r.Device); err == nil {
		bridge, err = linkByName(r.Bridge)
	}
	if err == nil && (device == nil || bridge == nil) {
		err = fmt.Errorf("interface %s or %s is gone", r.Device, r.Bridge)
	}
	return device, bridge, err
}

// moved tells whether the bridge's interface has all and the device nothing.
func (r Record) moved() (ok bool, what string, err error) {
	device, bridge, err := r.both()
	if err != nil {
		return false, err.Error(), nil
	}
	left, err1 := snapshot(device)
	have, err2 := snapshot(bridge)
	if err := errors.Join(err1, err2); err != nil {
		return false, "", err
	}
	missing := 0
	for _, a := range r.Addresses {
		if !slices.Contains(have.Addresses, a) {
			missing++
		}
	}
	for _, route := range r.Routes {
		if !slices.ContainsFunc(have.Routes, func(h Route) bool { return h.key() == route.key() }) {
			missing++
		}
	}
	rest := len(left.Addresses) + len(left.Routes)
	if missing+rest > 0 {
		return false, fmt.Sprintf("%d missing on %s, %d left on %s", missing, r.Bridge, rest, r.Device), nil
	}
	return true, fmt.Sprintf("%s has %d addresses and %d routes", r.Bridge, len(have.Addresses), len(have.Routes)), nil
}

func (r Record) move() error {
	device, bridge, err := r.both()
	if err != nil {
		return err
	}
	if err := r.give(bridge); err != nil {
		return err
	}
	return r.take(device)
}

// back gives the device everything again; the bridge's interface may be gone.
func (r Record) back() error {
	device, err := linkByName(r.Device)
	if err == nil && device == nil {
		err = fmt.Errorf("interface %s is gone", r.Device)
	}
	if err == nil {
		err = undeafen()
	}
	if err == nil {
		err = netlink.LinkSetUp(device)
	}
	if err == nil {
		err = r.give(device)
	}
	if err != nil {
		return fmt.Errorf("give %s its addresses back: %w", r.Device, err)
	}
	bridge, err := linkByName(r.Bridge)
	if err == nil && bridge != nil {
		err = r.take(bridge)
	}
	if err == nil && r.GRO {
		err = ethtool.Set(r.Device, ethtool.GRO, true)
	}
	return err
}
