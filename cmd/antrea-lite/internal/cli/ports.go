package cli

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
)

func (a *app) portsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ports", Aliases: []string{"port", "interfaces"}, Short: "Show the Pods' interfaces and their OVS ports", Args: cobra.NoArgs,
		Long: `Show every interface that is plugged in: its Pod and container, its port on the
bridge with the OpenFlow number, its state and what it waits for.

States: linked (the cable exists), waiting (something is missing, the table says
what, since when, and how often the agent has looked), ready (flows are in),
withdrawing (being removed).`,
		Example: `  antrea-lite ports
  antrea-lite ports -o wide
  antrea-lite ports -o json | jq '.[] | select(.state != "ready")'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(cmd); err != nil {
				return err
			}
			var ports []api.Port
			if err := api.NewClient(a.conf.CNISocket).Get(cmd.Context(), api.PathPorts, url.Values{}, &ports); err != nil {
				return err
			}
			if a.out.format == formatJSON {
				return a.out.json(ports)
			}
			return a.out.portTable(ports, time.Now())
		},
	}
	a.socketFlag(cmd)
	a.out.flag(cmd, formatTable, formatWide, formatJSON)
	return cmd
}

func (o *output) portTable(ports []api.Port, now time.Time) error {
	wide := o.format == formatWide
	header := []string{"POD", "CONTAINER", "IFNAME", "HOST", "OFPORT", "STATE", "MAC", "IPS", "VLAN", "AGE"}
	if wide {
		header = append(header, "MTU", "IPAM", "NETWORK", "NETNS")
	}
	rows := make([][]cell, len(ports))
	for i, p := range ports {
		container := p.ContainerID
		if !wide {
			container = container[:min(12, len(container))]
		}
		ips := make([]string, len(p.IPs))
		for j, ip := range p.IPs {
			ips[j] = ip.Addr().String()
			if wide {
				ips[j] = ip.String()
			}
		}
		number := "-"
		if p.OFPort != 0 {
			number = fmt.Sprint(p.OFPort)
		}
		rows[i] = []cell{text(dash(p.Pod)), text(container), text(p.IfName), text(p.Host), text(number), state(p, now),
			text(p.MAC), text(dash(strings.Join(ips, ","))), text(vlan(p.VLAN)), text(age(now.Sub(p.Created)))}
		if wide {
			rows[i] = append(rows[i], text(fmt.Sprint(p.MTU)), text(dash(p.IPAM)), text(dash(p.Network)), text(dash(p.NetNS)))
		}
	}
	return o.table(header, rows)
}

func state(p api.Port, now time.Time) cell {
	c := cell{text: p.State}
	switch p.State {
	case "ready":
		c.paint = green
	case "waiting":
		c.paint, c.text = yellow, "waiting for "+p.Waiting
		if !p.WaitingSince.IsZero() {
			c.text = fmt.Sprintf("waiting %s, %d attempts, for %s", age(now.Sub(p.WaitingSince)), p.Attempts, p.Waiting)
		}
	default:
		c.paint = yellow
	}
	return c
}

func vlan(v uint16) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprint(v)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// age is a duration in its largest unit, as kubectl shows it.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
