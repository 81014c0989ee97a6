package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// hostCommands are the commands that this system has beside the common ones.
func (a *app) hostCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use: "prepare-node", Short: "Windows only: make the HNS network and enable Open vSwitch's extension", Args: cobra.NoArgs,
		Long: `On Windows this makes the HNS network that Pods are on and enables Open vSwitch's
extension in its switch. On Linux nothing has to be prepared: the agent makes the
bridge and the gateway, and the kernel module openvswitch comes with the kernel.`,
		Example: `  antrea-lite check    # what a Linux node lacks`,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("prepare-node is for Windows: on Linux the agent prepares the node itself; `antrea-lite check` says what is missing")
		},
	}, a.uplinkCommand(), a.restoreCommand()}
}

// hostFlags adds the agent's flags that only this system has.
func (a *app) hostFlags(*cobra.Command) {}

// host runs the agent as this system wants it.
func (a *app) host(cmd *cobra.Command, run func(*cobra.Command) error) error { return run(cmd) }
