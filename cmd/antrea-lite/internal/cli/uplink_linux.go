package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/agent"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/uplink"
)

// moveTime bounds the move of the node's device.
const moveTime = 30 * time.Second

func (a *app) uplinkCommand() *cobra.Command {
	dry, device := false, ""
	cmd := &cobra.Command{
		Use: "prepare-uplink", Short: "Move the node's network device behind Open vSwitch", Args: cobra.NoArgs,
		Long: `Make the network device that has the node's addresses a port of an Open vSwitch
bridge, whose own interface takes over its MAC, MTU, addresses and routes. Only a
tunnel (traffic.mode encap) on the userspace datapath needs this. The agent does it
by itself with traffic.prepareUplink, and keeps it so: while ovs-vswitchd is down
the device has its addresses back. What is done already is left alone, so the
command may be repeated; restore-uplink undoes it. --dry-run prints the steps and
changes nothing.`,
		Example: `  antrea-lite prepare-uplink --dry-run
  antrea-lite prepare-uplink --device eth1 --uplink-bridge br-phy`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withUplink(cmd, func() (string, error) {
				if device != "" {
					return device, nil
				}
				return uplink.DefaultDevice()
			}, func(ctx context.Context, m *uplink.Mover) error {
				printed := false
				err := m.Move(ctx, dry, func(r step.Result) {
					printed = true
					a.printStep(r)
				})
				if err == nil && !printed {
					fmt.Fprintln(a.out.w, "nothing to do: the node's addresses are on an interface of Open vSwitch that was made by somebody else")
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the steps and change nothing")
	cmd.Flags().StringVar(&device, "device", "", "the device (default that of the default route)")
	a.conf.Bind(cmd.Flags())
	return cmd
}

func (a *app) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore-uplink", Short: "Undo prepare-uplink: give the device its addresses back", Args: cobra.NoArgs,
		Long: `Give the device that prepare-uplink, or the agent with traffic.prepareUplink, moved
behind Open vSwitch its addresses and routes back, and remove the bridge. The agent
must not run: it would move the device again. The command may be repeated.`,
		Example: `  antrea-lite restore-uplink`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(cmd); err != nil {
				return err
			}
			var s api.Status
			if err := api.NewClient(a.conf.CNISocket).Get(cmd.Context(), api.PathStatus, url.Values{}, &s); err == nil {
				return fmt.Errorf("the agent runs (pid %d): end it first, it would move the device again", s.PID)
			}
			return a.withUplink(cmd, uplink.DefaultDevice, func(ctx context.Context, m *uplink.Mover) error { return m.Restore(ctx) })
		},
	}
	a.conf.Bind(cmd.Flags())
	return cmd
}

// withUplink runs do with a mover whose client for Open vSwitch runs.
func (a *app) withUplink(cmd *cobra.Command, device func() (string, error), do func(context.Context, *uplink.Mover) error) error {
	if err := a.load(cmd); err != nil {
		return err
	}
	mover, client, err := agent.NewUplink(a.conf, device)
	if err != nil {
		return err
	}
	return running(cmd.Context(), moveTime, client, func(ctx context.Context) error {
		err := do(ctx, mover)
		if last := client.Status().LastError; errors.Is(err, context.DeadlineExceeded) && last != "" {
			err = fmt.Errorf("%w: %s", err, last)
		}
		return err
	})
}
