package prepare

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/vswitch"
)

// Networks finds and makes the HNS network; *windows.Linker implements it.
// Without an adapter in its configuration it only finds.
type Networks interface {
	EnsureNetwork(ctx context.Context) (n windows.Network, created bool, err error)
}

// Node is what the steps work on.
type Node struct {
	OVS       func(ctx context.Context) (vswitch.Info, error) // asks Open vSwitch who it is
	Find      Networks                                        // makes nothing
	Make      Networks
	Extension Extension
	Wiring    Wiring
	Network   string // its name
	Uplink    string // "": it could not be found out
}

// Steps returns the steps that make the node ready, in their order.
func (n Node) Steps() []step.Step {
	return []step.Step{
		{
			Name: "Open vSwitch runs",
			Look: func(ctx context.Context) (bool, string, error) {
				info, err := n.OVS(ctx)
				if err != nil {
					return false, "", err
				}
				return true, fmt.Sprintf("version %s, schema %s", orUnknown(info.OVSVersion), info.DBSchema), nil
			},
			Would: "install Open vSwitch for Windows and start its services ovsdb-server and ovs-vswitchd (docs/windows.md)",
		},
		{
			Name: fmt.Sprintf("HNS network %q", n.Network),
			Look: func(ctx context.Context) (bool, string, error) {
				found, _, err := n.Find.EnsureNetwork(ctx)
				switch {
				case errors.Is(err, windows.ErrNoNetwork):
					return false, "there is none", nil
				case err != nil:
					return false, "", err
				}
				return true, fmt.Sprintf("%s, %s on adapter %q", found.ID, found.Type, found.Adapter), nil
			},
			Do: func(ctx context.Context) error {
				if n.Uplink == "" {
					return errors.New("no adapter has the default route: name one with --hns-uplink (Get-NetAdapter lists them)")
				}
				_, _, err := n.Make.EnsureNetwork(ctx)
				return err
			},
			Would: fmt.Sprintf("make a network of type Transparent on adapter %q; the node's network is away for some seconds", n.Uplink),
		},
		{
			Name: "Host behind Open vSwitch",
			Look: n.wired,
			Would: "connect the uplink and the host's adapter to a bridge (docs/windows.md), then run this again; " +
				"without that the node would be cut off by the next step",
		},
		{
			Name: "Open vSwitch extension",
			Look: n.extended,
			Do: func(ctx context.Context) error {
				id, err := n.id(ctx)
				if err != nil {
					return err
				}
				return n.Extension.Enable(ctx, id)
			},
			Would: "enable it in the network's switch; from then on the host is reached through Open vSwitch only",
		},
	}
}

// extended tells whether the extension is enabled.
func (n Node) extended(ctx context.Context) (on bool, found string, err error) {
	id, err := n.id(ctx)
	if errors.Is(err, windows.ErrNoNetwork) {
		return false, "there is no network yet", nil
	}
	if err != nil {
		return false, "", err
	}
	on, err = n.Extension.Enabled(ctx, id)
	if err != nil || on {
		return on, "enabled", err
	}
	return false, "disabled", nil
}

// wired tells whether the node stays reachable when the extension is enabled.
func (n Node) wired(ctx context.Context) (ok bool, found string, err error) {
	if on, _, err := n.extended(ctx); err == nil && on {
		return true, "the extension is enabled already", nil
	}
	uplink := n.Uplink
	// The default route may lead to the host's own adapter on the switch by now.
	if found, _, err := n.Find.EnsureNetwork(ctx); err == nil && found.Adapter != "" {
		uplink = found.Adapter
	}
	return n.Wiring.Look(ctx, uplink)
}

func (n Node) id(ctx context.Context) (windows.GUID, error) {
	found, _, err := n.Find.EnsureNetwork(ctx)
	return found.ID, err
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
