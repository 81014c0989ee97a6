package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/agent"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/prepare"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/vswitch"
)

// askOVS bounds the question whether Open vSwitch is there.
const askOVS = 5 * time.Second

func (a *app) prepareCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use: "prepare-node", Short: "Make the HNS network and enable Open vSwitch's extension", Args: cobra.NoArgs,
		Long: `Make this node ready for the agent, step by step: Open vSwitch answers; the HNS
network (Transparent) is on the uplink; uplink and host are on a bridge of Open
vSwitch; Open vSwitch's extension is enabled in the network's switch. What is done
already is left alone, so the command may be repeated.

Making the network takes the node's own network away for some seconds: work on the
console. Once the extension is enabled the node is reached through Open vSwitch
only, so the command stops before that until you have connected the uplink and the
host's adapter to a bridge, as docs/windows.md says. --dry-run prints the steps and
changes nothing.`,
		Example: `  antrea-lite prepare-node --dry-run
  antrea-lite prepare-node --hns-uplink Ethernet0 --pod-cidrs 10.10.1.0/24`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(cmd); err != nil {
				return err
			}
			node, err := a.conf.Check()
			if err != nil {
				return err
			}
			want := agent.HNSNetwork(a.conf, node)
			if want.Adapter == "" {
				if want.Adapter, err = prepare.DefaultAdapter(); err != nil {
					return fmt.Errorf("the adapter with the default route cannot be found: %w: name one with --hns-uplink", err)
				}
			}
			find := want
			find.Adapter = "" // without an adapter nothing can be made
			finder, err := windows.NewLinker(windows.Config{HNS: windows.NewHCN(), Network: find})
			if err != nil {
				return err
			}
			maker, err := windows.NewLinker(windows.Config{HNS: windows.NewHCN(), Network: want})
			if err != nil {
				return err
			}
			n := prepare.Node{OVS: a.askOVS, Find: finder, Make: maker, Extension: prepare.Extension{Caller: prepare.NewHNS()},
				Wiring: prepare.Wiring{Bridge: a.askBridge, Adapters: hostif.List}, Network: want.Name, Uplink: want.Adapter}
			return step.Run(cmd.Context(), n.Steps(), dry, a.printStep)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the steps and change nothing")
	a.conf.Bind(cmd.Flags())
	return cmd
}

// askOVS asks Open vSwitch who it is.
func (a *app) askOVS(ctx context.Context) (info vswitch.Info, err error) {
	err = a.ask(ctx, func(ctx context.Context, client *vswitch.Client) (err error) {
		info, err = client.Info(ctx)
		return err
	})
	if err == nil {
		err = agent.OVSTooOld(info)
	}
	return info, err
}

// askBridge asks Open vSwitch which bridge has a port.
func (a *app) askBridge(ctx context.Context, port string) (bridge string, err error) {
	err = a.ask(ctx, func(ctx context.Context, client *vswitch.Client) (err error) {
		bridge, err = client.BridgeOf(ctx, port)
		return err
	})
	return bridge, err
}

// ask makes one question to OVSDB.
func (a *app) ask(ctx context.Context, question func(context.Context, *vswitch.Client) error) error {
	client, err := vswitch.New(agent.OVSDB(a.conf))
	if err != nil {
		return err
	}
	return running(ctx, askOVS, client, func(ctx context.Context) error {
		err := question(ctx, client)
		if last := client.Status().LastError; err != nil && last != "" {
			err = errors.New(last)
		}
		return err
	})
}
