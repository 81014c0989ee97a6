package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Bind defines a flag for every setting; flags show the defaults that c holds.
func (c *Config) Bind(flags *pflag.FlagSet) {
	flags.Var(&c.PodCIDRs, "pod-cidrs", "ranges of this node's Pods: one IPv4, one IPv6 or both, such as 10.10.0.0/24,fd00:10::/64")
	flags.StringVar(&c.Bridge, "bridge", c.Bridge, "Open vSwitch bridge; made when missing")
	flags.StringVar(&c.Datapath, "datapath", c.Datapath, "datapath of the bridge: system (kernel) or netdev (userspace)")
	flags.StringVar(&c.OVSDB, "ovsdb", c.OVSDB, "OVSDB server: "+localForm+" or tcp:127.0.0.1:PORT")
	flags.StringVar(&c.OpenFlow, "openflow", c.OpenFlow, "OpenFlow endpoint of the bridge: "+localForm+" or tcp:127.0.0.1:PORT (default "+localKind+":OVS-RUN-DIR/BRIDGE.mgmt)")
	flags.StringVar(&c.OVSRunDir, "ovs-run-dir", c.OVSRunDir, "directory of Open vSwitch's sockets")
	flags.StringVar(&c.Gateway.Name, "gateway", c.Gateway.Name, "name of the node's own interface on the bridge")
	flags.Var(&c.Gateway.Addresses, "gateway-addresses", "addresses of the gateway (default the first of each Pod CIDR)")
	flags.IntVar(&c.MTU, "mtu", c.MTU, "MTU of Pods and gateway (default 1500, in a cluster what the uplink leaves)")
	flags.StringVar(&c.HostPrefix, "host-prefix", c.HostPrefix, "beginning of the names of the Pods' host interfaces")
	flags.StringVar(&c.HNS.Network, "hns-network", c.HNS.Network, "Windows: HNS network that Pods are on")
	flags.StringVar(&c.HNS.Uplink, "hns-uplink", c.HNS.Uplink, "Windows: adapter under the HNS network; with it the agent makes the network where it is missing (default for prepare-node: the one with the default route)")
	flags.StringVar(&c.Kubernetes.NodeName, "node-name", c.Kubernetes.NodeName, "name of this machine's Node: makes the agent one of a Kubernetes cluster")
	flags.StringVar(&c.Kubernetes.Kubeconfig, "kubeconfig", c.Kubernetes.Kubeconfig, "file that says how to reach the API server (default the ServiceAccount of the agent's Pod)")
	flags.Var(&c.Kubernetes.UnavailableAfter, "unavailable-after", "in a cluster: how long ADDs may be impossible before CNI STATUS says so")
	flags.StringVar(&c.Traffic.Mode, "traffic-mode", c.Traffic.Mode, "in a cluster: noEncap (routes between nodes that share a link) or encap (a tunnel)")
	flags.StringVar(&c.Traffic.Tunnel, "tunnel", c.Traffic.Tunnel, "in encap mode: geneve or vxlan")
	flags.BoolVar(&c.Traffic.NoMasquerade, "no-masquerade", c.Traffic.NoMasquerade, "in a cluster: keep the Pods' source addresses when packets leave it")
	flags.BoolVar(&c.Traffic.PrepareUplink, "prepare-uplink", c.Traffic.PrepareUplink, "in encap mode on datapath netdev: move the device that has the node's addresses into a bridge; preview with `antrea-lite prepare-uplink --dry-run`")
	flags.StringVar(&c.Traffic.UplinkBridge, "uplink-bridge", c.Traffic.UplinkBridge, "with --prepare-uplink: name of that bridge")
	flags.StringVar(&c.CNISocket, "cni-socket", c.CNISocket, "socket (on Windows named pipe) on which the CNI plugin finds the agent")
	flags.StringVar(&c.CNIConfDir, "cni-conf-dir", c.CNIConfDir, "write a CNI configuration file here once ready, such as "+confDirLike+" (default none)")
	flags.StringVar(&c.MetricsAddress, "metrics-address", c.MetricsAddress, "address for /metrics, /healthz and /readyz; empty for none")
	flags.StringVar(&c.StateDir, "state-dir", c.StateDir, "directory of the address leases")
	flags.StringVar(&c.LockDir, "lock-dir", c.LockDir, "directory of the lock that lets one agent run for each bridge")
	flags.StringVar(&c.PortReadiness, "port-readiness", c.PortReadiness, "sync: ADD waits for a port's number and flows; async: ADD returns at once, and host devices may come later")
	flags.Var(&c.NotReadyAfter, "not-ready-after", "time after which a port that is still missing is reported")
	flags.Var(&c.RetryInterval, "retry-interval", "how often a port that waits is looked at again")
	flags.Var(&c.SyncPeriod, "sync-period", "how often ports are listed again and dead interfaces are swept")
	flags.StringVar(&c.LogFile, "log-file", c.LogFile, "file for the log (default stderr)")
	flags.IntVarP(&c.Verbosity, "verbosity", "v", c.Verbosity, "verbosity of the log")
}

// Load fills c from the file at path and applies the flags given on the command
// line again, because they win. A missing DefaultFile is an empty one.
func (c *Config) Load(path string, flags *pflag.FlagSet) error {
	type given struct{ name, value string }
	var wins []given
	flags.Visit(func(f *pflag.Flag) { wins = append(wins, given{f.Name, f.Value.String()}) })

	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == DefaultFile:
	case err != nil:
		return fmt.Errorf("configuration file: %w", err)
	default:
		if err := c.parse(b); err != nil {
			return fmt.Errorf("configuration file %s: %w", path, err)
		}
	}
	for _, g := range wins {
		// An empty list cannot be set by an empty string; it is what was given all the same.
		if err := flags.Set(g.name, g.value); err != nil {
			return fmt.Errorf("--%s: %w", g.name, err)
		}
	}
	return nil
}

func (c *Config) parse(b []byte) error {
	var tree map[string]any
	if err := yaml.UnmarshalStrict(b, &tree); err != nil {
		return fmt.Errorf("no valid YAML: %w", oneLine{err})
	}
	if err := checkKeys(tree, reflect.TypeFor[Config](), ""); err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(b, c); err != nil {
		return oneLine{err}
	}
	return nil
}

// oneLine shows an error of the YAML package without its line breaks.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

func (e oneLine) Unwrap() error { return e.error }

// checkKeys refuses keys that the struct does not have: a setting that is
// misspelt would otherwise silently keep its default.
func checkKeys(tree map[string]any, t reflect.Type, prefix string) error {
	known := map[string]reflect.Type{}
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = f.Type
		names = append(names, name)
	}
	slices.Sort(names)
	for key, value := range tree {
		ft, ok := known[key]
		if !ok {
			if near := nearest(key, names); near != "" {
				return fmt.Errorf("unknown key %q: did you mean %q?", prefix+key, prefix+near)
			}
			return fmt.Errorf("unknown key %q: known are %s", prefix+key, strings.Join(names, ", "))
		}
		if sub, isMap := value.(map[string]any); isMap && ft.Kind() == reflect.Struct {
			if err := checkKeys(sub, ft, prefix+key+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearest returns the name at the smallest edit distance, if that is near enough to be a slip.
func nearest(key string, names []string) string {
	best, bestDist := "", max(2, len(key)/3)+1
	for _, n := range names {
		if d := distance(strings.ToLower(key), strings.ToLower(n)); d < bestDist {
			best, bestDist = n, d
		}
	}
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
