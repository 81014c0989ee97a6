package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/winservice"
)

const (
	serviceName = "antrea-lite"
	// serviceLog is where a service logs unless configured otherwise: it has no stderr.
	serviceLog = `C:\var\log\antrea-lite\agent.log`
	// serviceTime bounds a start or stop. The agent gives calls under way 8 s.
	serviceTime = 30 * time.Second
)

func service() winservice.Service {
	return winservice.Service{Name: serviceName, DisplayName: "antrea-lite node agent", Description: "Plugs Pods into Open vSwitch."}
}

// hostCommands are the commands that this system has beside the common ones.
func (a *app) hostCommands() []*cobra.Command {
	return []*cobra.Command{a.prepareCommand(), a.serviceCommand()}
}

func (a *app) serviceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "service", Short: "Run the agent as a Windows service",
		Long: `Install the agent as the Windows service "antrea-lite", start and stop it, remove it.
Each may be repeated. The service starts with Windows and again after a failure; it
reads its configuration file at every start. A stop leaves the Pods as they are.`,
		Example: `  antrea-lite service install --config C:\etc\antrea-lite\agent.yaml
  antrea-lite service start
  antrea-lite service stop
  antrea-lite service uninstall`,
	}
	add := func(verb, short, long, done string, do func(context.Context) error) {
		cmd.AddCommand(&cobra.Command{Use: verb, Short: short, Long: long, Example: "  antrea-lite service " + verb, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				ctx, cancel := context.WithTimeout(cmd.Context(), serviceTime)
				defer cancel()
				if err := do(ctx); err != nil {
					return err
				}
				_, err := fmt.Fprintf(a.out.w, "service %s %s\n", serviceName, done)
				return err
			}})
	}
	add("install", "Install the service, or change what it runs", "Make the service run this program file with this configuration file at every start of Windows.", "is installed", a.installService)
	add("uninstall", "Stop the service and remove it", "Stop the service and remove it. Pods, ports and flows stay.", "is not installed", service().Uninstall)
	add("start", "Start the service", "Start the service and wait until it runs.", "runs", service().Start)
	add("stop", "Stop the service", "Stop the service and wait until it has ended. Pods, ports and flows stay.", "is stopped", service().Stop)
	return cmd
}

func (a *app) installService(context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	conf, err := filepath.Abs(a.configFile)
	if err != nil {
		return err
	}
	return service().Install(exe, "agent", "--windows-service", "--config", conf)
}

// hostFlags adds the agent's flags that only this system has.
func (a *app) hostFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.asService, "windows-service", false, "run as the Windows service antrea-lite; the service manager starts it so")
}

// host runs the agent as this system wants it. Everything is part of the
// service's work, so that a mistake in the configuration reaches the event log.
func (a *app) host(cmd *cobra.Command, run func(*cobra.Command) error) error {
	if !a.asService {
		return run(cmd)
	}
	a.defaultLog = serviceLog
	return winservice.Run(serviceName, serviceTime, func(ctx context.Context) error {
		cmd.SetContext(ctx)
		return run(cmd)
	})
}
