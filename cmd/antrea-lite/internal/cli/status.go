package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
)

// errNotReady makes the exit code of `status` tell what it printed.
var errNotReady = errors.New("the agent is not ready")

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show how the agent does", Args: cobra.NoArgs,
		Long: `Show the agent's links to Open vSwitch, the bridge, the gateway, the ranges and the
number of Pods by state. The exit code is 1 while the agent is not ready.`,
		Example: `  antrea-lite status
  antrea-lite status -o json | jq .sessions`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(cmd); err != nil {
				return err
			}
			var s api.Status
			if err := api.NewClient(a.conf.CNISocket).Get(cmd.Context(), api.PathStatus, url.Values{}, &s); err != nil {
				return err
			}
			show := func() error { return a.out.statusTable(s, time.Now()) }
			if a.out.format == formatJSON {
				show = func() error { return a.out.json(s) }
			}
			if err := show(); err != nil {
				return err
			}
			if !s.Ready {
				return errNotReady
			}
			return nil
		},
	}
	a.socketFlag(cmd)
	a.out.flag(cmd, formatTable, formatJSON)
	return cmd
}

func (o *output) statusTable(s api.Status, now time.Time) error {
	ready := cell{"ready", green}
	if !s.Ready {
		ready = cell{"not ready", red}
	}
	gateway := []cell{text("gateway"), text(s.Gateway.Name), text(fmt.Sprintf("port %d, %s, MTU %d, %s", s.Gateway.OFPort, dash(s.Gateway.MAC), s.Gateway.MTU, prefixes(s)))}
	if s.Gateway.Name == "" {
		gateway = []cell{text("gateway"), text("none"), text("Pods reach each other only")}
	}
	rows := [][]cell{
		{text("agent"), ready, text(fmt.Sprintf("version %s, pid %d, up %s", s.Version, s.PID, age(now.Sub(s.Started))))},
		{text("bridge"), text(s.Bridge.Name), text(fmt.Sprintf("datapath %s, id %s, Open vSwitch %s, schema %s",
			s.Bridge.Datapath, dash(s.Bridge.DatapathID), dash(s.Bridge.OVSVersion), dash(s.Bridge.DBSchema)))},
		gateway,
		session("OVSDB", s.Sessions.OVSDB, now), session("OpenFlow", s.Sessions.OpenFlow, now),
	}
	for _, r := range s.Ranges {
		c := cell{"free", green}
		if r.Full {
			c = cell{"full", red}
		}
		rows = append(rows, []cell{text("range"), c, text(fmt.Sprintf("%s, %d of %s taken", r.Prefix, r.Taken, r.Size))})
	}
	var counts []string
	total := 0
	for _, state := range slices.Sorted(maps.Keys(s.Ports)) {
		counts = append(counts, fmt.Sprintf("%d %s", s.Ports[state], state))
		total += s.Ports[state]
	}
	rows = append(rows, []cell{text("interfaces"), text(fmt.Sprint(total)), text(dash(strings.Join(counts, ", ")))})
	for _, p := range s.Parts {
		if !p.OK {
			rows = append(rows, []cell{text(p.Name), {"not well", red}, text(p.Reason)})
		}
	}
	return o.table([]string{"PART", "STATE", "DETAILS"}, rows)
}

func session(name string, s api.Session, now time.Time) []cell {
	c, details := cell{"up", green}, s.Endpoint
	if !s.Ready {
		c = cell{"down", red}
	}
	if !s.Since.IsZero() {
		details += fmt.Sprintf(", for %s, %d reconnects", age(now.Sub(s.Since)), s.Reconnects)
	}
	if !s.Ready && s.LastError != "" {
		details += ": " + s.LastError
	}
	return []cell{text(name), c, text(details)}
}

func prefixes(s api.Status) string {
	out := make([]string, len(s.Gateway.Addresses))
	for i, p := range s.Gateway.Addresses {
		out[i] = p.String()
	}
	return dash(strings.Join(out, " "))
}
