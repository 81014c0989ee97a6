// Package config is the agent's configuration: a YAML file, flags that win over
// it, and the checks that turn a mistake into one clear message before anything
// on the node is touched.
package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

// Values of PortReadiness.
const (
	// Sync: ADD waits until the port has its number and its flows.
	Sync = "sync"
	// Async: ADD returns at once; the port becomes ready when what it needs comes.
	Async = "async"
)

// Config is the configuration file. Field names in YAML are the json tags.
type Config struct {
	// PodCIDRs are the ranges of this node's Pods: one IPv4, one IPv6 or both.
	PodCIDRs List `json:"podCIDRs,omitempty"`
	// Bridge is the Open vSwitch bridge; it is made when missing.
	Bridge string `json:"bridge,omitempty"`
	// Datapath is "system" (kernel) or "netdev" (userspace).
	Datapath string `json:"datapath,omitempty"`
	// OVSDB and OpenFlow are endpoints: unix:PATH (npipe:NAME on Windows) or
	// tcp:LOOPBACK:PORT. An empty OpenFlow is the bridge's .mgmt socket in RunDir.
	OVSDB    string `json:"ovsdb,omitempty"`
	OpenFlow string `json:"openflow,omitempty"`
	// OVSRunDir is where Open vSwitch keeps its sockets.
	OVSRunDir string `json:"ovsRunDir,omitempty"`

	Gateway Gateway `json:"gateway,omitzero"`
	// MTU of the Pods' interfaces and the gateway. 0: 1500, or in a cluster what the uplink leaves.
	MTU int `json:"mtu,omitempty"`
	// HostPrefix begins the names of the Pods' host interfaces.
	HostPrefix string `json:"hostPrefix,omitempty"`

	// Kubernetes makes the agent one of a cluster.
	Kubernetes Kubernetes `json:"kubernetes,omitzero"`
	// Traffic says how Pods of different nodes reach each other, in a cluster.
	Traffic Traffic `json:"traffic,omitzero"`

	// HNS is used on Windows only.
	HNS HNS `json:"hns,omitzero"`

	// CNISocket is where the plugin finds the agent.
	CNISocket string `json:"cniSocket,omitempty"`
	// CNIConfDir, when set, gets a CNI configuration file once the agent is ready.
	CNIConfDir string `json:"cniConfDir,omitempty"`
	// MetricsAddress serves /metrics, /healthz and /readyz; "" serves none.
	MetricsAddress string `json:"metricsAddress"`
	// StateDir holds the address leases. It should die with the boot, as Pods do.
	StateDir string `json:"stateDir,omitempty"`
	// LockDir holds one lock file for each bridge. Agents of one node have to share it.
	LockDir string `json:"lockDir,omitempty"`

	// PortReadiness is Sync or Async.
	PortReadiness string `json:"portReadiness,omitempty"`
	// NotReadyAfter is how long a port may be waited for before it is reported.
	NotReadyAfter Duration `json:"notReadyAfter,omitempty"`
	// RetryInterval is how often a port that waits is looked at again, beside events.
	RetryInterval Duration `json:"retryInterval,omitempty"`
	// SyncPeriod is how often the OpenFlow port list is read again and dead interfaces are swept.
	SyncPeriod Duration `json:"syncPeriod,omitempty"`
	// LogFile gets the log in place of stderr; a file that has grown large is
	// moved to LogFile.1. A Windows service has no stderr.
	LogFile string `json:"logFile,omitempty"`
	// Verbosity of the log, as klog's -v.
	Verbosity int `json:"verbosity,omitempty"`
}

// Kubernetes says of which cluster the node is.
type Kubernetes struct {
	// NodeName is the name of this machine's Node object. When set, Pod ranges come
	// from the Node, and Pods get events and a condition.
	NodeName string `json:"nodeName,omitempty"`
	// Kubeconfig is a file; empty: the ServiceAccount of the agent's own Pod.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// UnavailableAfter is how long ADDs may be impossible before CNI's STATUS says
	// so, which makes the Node NotReady.
	UnavailableAfter Duration `json:"unavailableAfter,omitempty"`
}

// Modes of traffic between nodes, and kinds of tunnels.
const (
	NoEncap = "noEncap"
	Encap   = "encap"
	Geneve  = "geneve"
	VXLAN   = "vxlan"
)

// Traffic says how Pods of different nodes reach each other.
type Traffic struct {
	// Mode is noEncap (routes between nodes that share a link) or encap (a tunnel).
	Mode string `json:"mode,omitempty"`
	// Tunnel is geneve or vxlan.
	Tunnel string `json:"tunnel,omitempty"`
	// NoMasquerade leaves the source addresses of packets that leave the cluster alone.
	NoMasquerade bool `json:"noMasquerade,omitempty"`
	// PrepareUplink lets the agent move the device that has the node's addresses into
	// an Open vSwitch bridge, UplinkBridge. On the userspace datapath a tunnel needs that.
	PrepareUplink bool   `json:"prepareUplink,omitempty"`
	UplinkBridge  string `json:"uplinkBridge,omitempty"`
}

// HNS names the network of the Host Network Service on Windows.
type HNS struct {
	// Network is the name of the Transparent network that has Open vSwitch's extension.
	Network string `json:"network,omitempty"`
	// Uplink is the adapter under that network. With it the agent makes the network
	// and enables the extension itself. Empty: it does not, and prepare-node takes
	// the adapter with the default route.
	Uplink string `json:"uplink,omitempty"`
}

// Gateway is the node's own interface on the bridge.
type Gateway struct {
	// Name of the interface. On Windows it may be empty: Pods reach each other only.
	Name string `json:"name"`
	// Addresses of the gateway, without prefix lengths; the first of each Pod CIDR when empty.
	Addresses List `json:"addresses,omitempty"`
}

// Default returns the configuration of an empty file. PodCIDRs have no default.
func Default() *Config {
	c := &Config{
		Bridge:         "br-int",
		Datapath:       "system",
		Gateway:        Gateway{Name: gatewayNamed},
		HostPrefix:     "pod",
		HNS:            HNS{Network: "antrea-lite"},
		Kubernetes:     Kubernetes{UnavailableAfter: Duration(time.Minute)},
		Traffic:        Traffic{Mode: NoEncap, Tunnel: Geneve, UplinkBridge: "br-phy"},
		MetricsAddress: "127.0.0.1:10351",
		PortReadiness:  defaultReadiness,
		NotReadyAfter:  Duration(30 * time.Second),
		RetryInterval:  Duration(5 * time.Second),
		SyncPeriod:     Duration(time.Minute),
	}
	c.hostDefaults()
	return c
}

// OpenFlowEndpoint is OpenFlow, or the bridge's management socket.
func (c *Config) OpenFlowEndpoint() string {
	if c.OpenFlow != "" {
		return c.OpenFlow
	}
	return localKind + ":" + filepath.Join(c.OVSRunDir, c.Bridge+".mgmt")
}

// LockFile is the file that the one agent of this bridge holds locked. Bridges
// of different Open vSwitches may share a name.
func (c *Config) LockFile() string {
	sum := sha256.Sum256([]byte(c.OVSDB))
	return filepath.Join(c.LockDir, fmt.Sprintf("%s-%x.lock", c.Bridge, sum[:4]))
}

// Duration is a time.Duration written as "30s" or "5m".
type Duration time.Duration

// UnmarshalJSON reads the string form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration %s: write it as a string such as \"30s\"", b)
	}
	return d.Set(s)
}

// MarshalJSON writes the string form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// Set implements pflag.Value.
func (d *Duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q: use a form such as 30s or 5m", s)
	}
	*d = Duration(v)
	return nil
}

// String implements pflag.Value.
func (d Duration) String() string { return time.Duration(d).String() }

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }
