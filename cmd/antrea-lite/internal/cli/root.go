// Package cli is the command line of antrea-lite.
package cli

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
)

// app is what the commands share: the configuration that flags and file fill.
type app struct {
	conf       *config.Config
	configFile string
	version    string
	out        output

	asService  bool   // Windows: the service manager started this process
	defaultLog string // log file when the configuration names none; "": stderr
}

// New returns the root command. version may be empty; then the build tells.
func New(version string, stdout io.Writer) *cobra.Command {
	if version == "" {
		version = buildVersion()
	}
	a := &app{conf: config.Default(), version: version, out: output{w: stdout}}
	root := &cobra.Command{
		Use:   "antrea-lite",
		Short: "Plugs Pods into Open vSwitch, and shows what is plugged in",
		Long: `antrea-lite is a node agent that plugs Kubernetes Pods, or any containers with
a network namespace, into an Open vSwitch bridge. A CNI plugin, antrea-lite-cni,
asks it for an interface; the agent makes the cable, the OVS port and the
OpenFlow flows, and keeps them right whatever restarts.

NetworkPolicy is not enforced.`,
		Example: `  # Run the agent on a node whose Pods have 10.10.0.0/24
  antrea-lite agent --pod-cidrs 10.10.0.0/24

  # What is plugged in, and is everything well?
  antrea-lite ports
  antrea-lite status
  antrea-lite check`,
		SilenceUsage:  true, // an error about OVS is not an error of usage
		SilenceErrors: true, // main prints it
		Version:       version,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().StringVar(&a.configFile, "config", config.DefaultFile, "configuration file; flags win over it")
	root.AddCommand(a.agentCommand(), a.portsCommand(), a.statusCommand(), a.checkCommand(), a.flowsCommand(), a.eventsCommand(), a.versionCommand())
	root.AddCommand(a.hostCommands()...)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out.w, a.version)
			return err
		},
	}
}

// buildVersion is the module's version, or the commit it was built from.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	version, changes := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			version += "-" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	return version + changes
}

// load fills the configuration for a command that only asks: it needs the
// endpoints and sockets, so a file that cannot be read is an error only if it was named.
func (a *app) load(cmd *cobra.Command) error {
	return a.conf.Load(a.configFile, cmd.Flags())
}

// socketFlag adds the one setting by which a question finds the agent.
func (a *app) socketFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.conf.CNISocket, "cni-socket", a.conf.CNISocket, "the agent's unix socket")
}
