package cli

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
)

func (a *app) flowsCommand() *cobra.Command {
	var want bool
	cmd := &cobra.Command{
		Use: "flows POD", Aliases: []string{"trace"}, Short: "Show the flows of one Pod", Args: cobra.ExactArgs(1),
		Long: `Show the OpenFlow flows of one Pod as the switch has them, with the names of the
tables and the counters that tell which of them packets hit. POD is a Pod's
name, NAMESPACE/NAME, a host interface, or the beginning of a container id.`,
		Example: `  antrea-lite flows web-0
  antrea-lite flows default/web-0 --want   # as they should be
  antrea-lite flows podab12cd34ef56 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.load(cmd); err != nil {
				return err
			}
			var flows []api.Flows
			if err := api.NewClient(a.conf.CNISocket).Get(cmd.Context(), api.PathFlows, url.Values{"q": args}, &flows); err != nil {
				return err
			}
			if a.out.format == formatJSON {
				return a.out.json(flows)
			}
			for _, f := range flows {
				if err := a.out.flowList(f, want); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&want, "want", false, "the flows as they should be, instead of those the switch has")
	a.socketFlag(cmd)
	a.out.flag(cmd, formatTable, formatJSON)
	return cmd
}

func (o *output) flowList(f api.Flows, want bool) error {
	title := fmt.Sprintf("%s  %s  port %d (%s)", dash(f.Port.Pod), f.Port.IfName, f.Port.OFPort, f.Port.Host)
	if _, err := fmt.Fprintln(o.w, o.painted(cell{title, bold}, 0)); err != nil {
		return err
	}
	list := f.Switch
	if want {
		list = f.Want
	}
	for _, flow := range list {
		if _, err := fmt.Fprintln(o.w, "  "+flow); err != nil {
			return err
		}
	}
	if f.Error != "" {
		return fmt.Errorf("the flows of %s cannot be shown: %s", dash(f.Port.Pod), f.Error)
	}
	return nil
}
