package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/doctor"
)

var errFailed = errors.New("the check found faults")

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Look for what is wrong on this node, and say what to do", Args: cobra.NoArgs,
		Long: `Check the configuration, the kernel, Open vSwitch, the sockets, the gateway with its
kernel settings, MTUs, and, when the agent runs, its links, ranges, ports and
flows. Nothing is changed. It works without a running agent, too.

Each line is ok, warn or fail. The exit code is 1 when a line is fail.`,
		Example: `  antrea-lite check
  antrea-lite check --config /etc/antrea-lite/agent.yaml -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loadErr := a.load(cmd)
			findings := doctor.Check(cmd.Context(), a.conf, loadErr)
			show := func() error { return a.out.findings(findings) }
			if a.out.format == formatJSON {
				show = func() error { return a.out.json(findings) }
			}
			if err := show(); err != nil {
				return err
			}
			for _, f := range findings {
				if f.Level == api.Fail {
					return errFailed
				}
			}
			return nil
		},
	}
	a.conf.Bind(cmd.Flags())
	a.out.flag(cmd, formatTable, formatJSON)
	return cmd
}

func (o *output) findings(list []api.Finding) error {
	rows := make([][]cell, len(list))
	for i, f := range list {
		paint := map[api.Level]colour{api.OK: green, api.Warn: yellow, api.Fail: red}[f.Level]
		found := f.Found
		if f.Remedy != "" {
			found += "; " + f.Remedy
		}
		rows[i] = []cell{{string(f.Level), paint}, text(f.What), text(found)}
	}
	return o.table([]string{"", "WHAT", "FOUND"}, rows)
}
