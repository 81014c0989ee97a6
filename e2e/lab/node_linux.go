package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// Bridge is the name of the bridge that the agent is told to use.
const Bridge = "br-int"

// GatewayName is the host's interface on the bridge.
const GatewayName = "gw0"

// NodeConfig tells what a node is made of.
type NodeConfig struct {
	Agent    string // path of bin/antrea-lite
	CNI      string // path of bin/antrea-lite-cni
	Datapath string // "netdev" or "system"

	PodCIDRs []string       // default: 10.10.0.0/22 and fd00:10::/64
	Extra    map[string]any // further keys of the agent's configuration; they win
}

// Node is one node: a private Open vSwitch, an agent and its plugin, in the
// network namespace of this process. Its methods are for one goroutine, but
// Plug, Unplug and what runs the plugin may be called concurrently.
type Node struct {
	Dir    string // configuration, sockets, leases and log of the agent
	Switch *vswitchtest.Switch
	Plugin Plugin

	cfg   NodeConfig
	agent *process
}

// NewNode starts the switch and writes the configuration; the agent is started
// by StartAgent.
func NewNode(cfg NodeConfig) (*Node, error) {
	for flag, path := range map[string]*string{"agent": &cfg.Agent, "cni": &cfg.CNI} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(abs); err != nil {
			return nil, fmt.Errorf("-%s: %w: run `make build` first", flag, err)
		}
		*path = abs
	}
	if len(cfg.PodCIDRs) == 0 {
		cfg.PodCIDRs = []string{"10.10.0.0/22", "fd00:10::/64"}
	}
	sw, err := vswitchtest.New()
	if err != nil {
		return nil, err
	}
	n := &Node{Switch: sw, cfg: cfg, Plugin: Plugin{Path: cfg.CNI}}
	// Debian's start script writes the version down; the daemon does not.
	if err := n.writeVersion(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if n.Dir, err = os.MkdirTemp("", "node"); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if err := n.Configure(nil); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) writeVersion() error {
	out, err := n.Switch.Appctl("version")
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(out, "\n") // ovs-vswitchd (Open vSwitch) 3.1.0
	fields := strings.Fields(first)
	_, err = n.Switch.Vsctl("--no-wait", "set", "Open_vSwitch", ".", "ovs-version="+fields[len(fields)-1])
	return err
}

// Configure writes the agent's configuration with further keys; it counts from
// the agent's next start.
func (n *Node) Configure(extra map[string]any) error {
	conf := map[string]any{
		"podCIDRs":       n.cfg.PodCIDRs,
		"bridge":         Bridge,
		"datapath":       n.cfg.Datapath,
		"ovsdb":          "unix:" + n.Switch.DBSock(),
		"ovsRunDir":      n.Switch.Dir,
		"gateway":        map[string]any{"name": GatewayName},
		"cniSocket":      n.Socket(),
		"stateDir":       n.StateDir(),
		"lockDir":        n.Dir,
		"metricsAddress": MetricsAddress,
	}
	maps.Copy(conf, n.cfg.Extra)
	maps.Copy(conf, extra)
	// JSON is YAML.
	raw, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(n.ConfigPath(), raw, 0o600)
}

// MetricsAddress is where the agent serves /metrics, /healthz and /readyz.
const MetricsAddress = "127.0.0.1:10351"

// Socket is the path of the agent's CNI socket.
func (n *Node) Socket() string { return filepath.Join(n.Dir, "cni.sock") }

// ConfigPath is the agent's configuration file.
func (n *Node) ConfigPath() string { return filepath.Join(n.Dir, "agent.yaml") }

// StateDir is where the agent keeps its IP leases.
func (n *Node) StateDir() string { return filepath.Join(n.Dir, "state") }

// Mgmt is the bridge's OpenFlow connection in ovs-ofctl's words.
func (n *Node) Mgmt() string { return "unix:" + n.Switch.MgmtSock(Bridge) }

// Close ends the agent and the switch and removes what they kept.
func (n *Node) Close() error {
	err := errors.Join(n.StopAgent(), EndSwitch(n.Switch), n.Switch.Close())
	if n.Dir != "" {
		err = errors.Join(err, os.RemoveAll(n.Dir))
	}
	return err
}

// EndSwitch makes ovs-vswitchd end with its datapath: the kernel's
// outlives the daemon unless it is told otherwise, and so do the taps of the
// userspace datapath when it is killed. It answers before it has done so.
func EndSwitch(sw *vswitchtest.Switch) error {
	pid := sw.VswitchdPID()
	if _, err := sw.Appctl("exit", "--cleanup"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return Until(ctx, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// Until Close reaps it, it stands there as a zombie.
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return nil
		}
		return errors.New("ovs-vswitchd is still cleaning up")
	})
}

// State lists what Pods leave on a node: interfaces, namespaces, ports,
// flows (without cookies and counters), tracked connections, leases.
func (n *Node) State() (Listing, error) {
	l, err := Machine()
	if err != nil {
		return nil, err
	}
	ports, err := n.Switch.Vsctl("list-ports", Bridge)
	if err != nil {
		return nil, err
	}
	l["port"] = lines(ports)
	if l["flow"], err = n.Flows(); err != nil {
		return nil, err
	}
	if l["lease"], err = n.Leases(); err != nil {
		return nil, err
	}
	l["connection"], err = n.Connections()
	return l, err
}

// Flows lists the bridge's flows without cookies and counters.
func (n *Node) Flows() ([]string, error) {
	out, err := n.Switch.Ofctl("--no-stats", "--no-names", "--sort", "dump-flows", n.Mgmt())
	if err != nil {
		return nil, err
	}
	return FlowLines(out), nil
}

// Connections lists the entries of connection tracking, ICMPv6 aside:
// ovs-vswitchd 3.1 dies of an OpenFlow request that would remove these, so they
// are left to time out (30 seconds).
func (n *Node) Connections() ([]string, error) {
	out, err := n.Switch.Appctl("dpctl/dump-conntrack", n.cfg.Datapath+"@ovs-"+n.cfg.Datapath)
	return slices.DeleteFunc(lines(out), func(entry string) bool { return strings.HasPrefix(entry, "icmpv6,") }), err
}

// Leases lists the addresses that are reserved on disk, with their owners.
func (n *Node) Leases() ([]string, error) {
	var leases []string
	err := filepath.WalkDir(n.StateDir(), func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || d.Name() == "lock" || path == filepath.Join(n.StateDir(), "boot") || strings.HasPrefix(d.Name(), "last_reserved_ip") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		leases = append(leases, d.Name()+" "+strings.Join(strings.Fields(string(raw)), " "))
		return nil
	})
	return leases, err
}

// Tool runs a sub-command of antrea-lite against this node's agent.
func (n *Node) Tool(ctx context.Context, args ...string) (string, error) {
	return output(ctx, n.cfg.Agent, append(args, "--config", n.ConfigPath())...)
}

func lines(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
