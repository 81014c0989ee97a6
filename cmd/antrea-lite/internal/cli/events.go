package cli

import (
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
)

func (a *app) eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "events [POD]", Aliases: []string{"event"}, Short: "Show the latest events of Pods", Args: cobra.MaximumNArgs(1),
		Long: `Show what happened to Pods lately, the latest last: that one has no network, for
longer than notReadyAfter, with the cause; and that one that had to wait has it.
The agent keeps the latest 1000 since its start. With a Pod's name,
NAMESPACE/NAME, a host interface or the beginning of a container id: of that one.`,
		Example: `  antrea-lite events
  antrea-lite events default/web-0
  antrea-lite events -o json | jq '.[] | select(.reason == "NetworkNotReady")'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.load(cmd); err != nil {
				return err
			}
			var events []api.Event
			query := url.Values{}
			if len(args) > 0 {
				query.Set("q", args[0])
			}
			if err := api.NewClient(a.conf.CNISocket).Get(cmd.Context(), api.PathEvents, query, &events); err != nil {
				return err
			}
			if a.out.format == formatJSON {
				return a.out.json(events)
			}
			return a.out.eventTable(events, time.Now())
		},
	}
	a.socketFlag(cmd)
	a.out.flag(cmd, formatTable, formatJSON)
	return cmd
}

func (o *output) eventTable(events []api.Event, now time.Time) error {
	rows := make([][]cell, len(events))
	for i, e := range events {
		paint := green
		if e.Type != "Normal" {
			paint = yellow
		}
		rows[i] = []cell{text(age(now.Sub(e.Time))), text(e.Type), {e.Reason, paint}, text(dash(e.Pod)), text(fmt.Sprintf("%.12s/%s", e.ContainerID, e.IfName)), text(e.Message)}
	}
	return o.table([]string{"AGE", "TYPE", "REASON", "POD", "INTERFACE", "MESSAGE"}, rows)
}
