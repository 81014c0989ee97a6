package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/agent"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/logfile"
)

// maxLog is how large a log file grows before it is moved away.
const maxLog = 100 << 20

func (a *app) agentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the node agent",
		Long: `Run the node agent until SIGTERM or SIGINT. It needs root and a running Open vSwitch.

Settings come from a YAML file (--config) and from flags, which win. Every flag
has a key in the file:

  podCIDRs: [10.10.0.0/24, "fd00:10::/64"]   # one IPv4, one IPv6 or both; required
  bridge: br-int
  datapath: system                           # or netdev, the userspace datapath
  ovsdb: unix:/run/openvswitch/db.sock
  openflow: ""                               # default unix:OVSRUNDIR/BRIDGE.mgmt
  ovsRunDir: /run/openvswitch
  gateway:
    name: antrea-gw0
    addresses: []                            # default the first of each Pod CIDR
  mtu: 1500
  hostPrefix: pod
  hns: {network: antrea-lite, uplink: ""}    # Windows
  cniSocket: /run/antrea-lite/cni.sock
  cniConfDir: ""                             # such as /etc/cni/net.d
  metricsAddress: 127.0.0.1:10351            # /metrics, /healthz, /readyz
  stateDir: /run/antrea-lite/leases          # address leases; should die with the boot
  lockDir: /run/antrea-lite
  portReadiness: sync                        # or async: ADD does not wait for the port
  notReadyAfter: 30s
  retryInterval: 5s                          # how often a port that waits is looked at
  syncPeriod: 1m
  logFile: ""                                # default stderr
  verbosity: 0

Windows has other defaults for paths and endpoints, which the flags below show;
docs/windows.md.

The agent may start before Open vSwitch and waits for it. It leaves Pods, flows
and the gateway as they are when it ends.`,
		Example: `  # Kernel datapath, dual stack
  antrea-lite agent --pod-cidrs 10.10.0.0/24,fd00:10::/64

  # Userspace datapath on a bridge of its own, with a CNI configuration for the runtime
  antrea-lite agent --pod-cidrs 10.20.0.0/24 --datapath netdev --bridge br-pods --cni-conf-dir /etc/cni/net.d

  # From a file, one setting overridden
  antrea-lite agent --config /etc/antrea-lite/agent.yaml --mtu 8950`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.host(cmd, a.runAgent) },
	}
	a.hostFlags(cmd)
	a.conf.Bind(cmd.Flags())
	return cmd
}

// runAgent loads the configuration and runs the agent until its command's
// context ends or a signal comes.
func (a *app) runAgent(cmd *cobra.Command) (err error) {
	if err := a.load(cmd); err != nil {
		return err
	}
	node, err := a.conf.Check()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	// To a service Windows signals that somebody logs off, which is not its end;
	// the service manager says when that has come.
	if !a.asService {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
		defer stop()
	}
	out := cmd.ErrOrStderr()
	if path := cmp.Or(a.conf.LogFile, a.defaultLog); path != "" {
		file, err := logfile.Open(path, maxLog)
		if err != nil {
			return fmt.Errorf("logFile: %w", err)
		}
		defer file.Close()
		out = file
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(a.conf.Verbosity), textlogger.Output(out)))
	klog.SetLogger(logger) // for libraries that do not take it from a context
	err = agent.Run(klog.NewContext(ctx, logger), a.conf, node, a.version)
	if err != nil && a.defaultLog != "" {
		logger.Error(err, "The agent failed")
	}
	return err
}
