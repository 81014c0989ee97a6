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

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// DefaultFile is read when no --config is given; it may be missing.
const DefaultFile = "/etc/antrea-lite/agent.yaml"

// Config is the configuration file. Field names in YAML are the json tags.
type Config struct {
	// PodCIDRs are the ranges of this node's Pods: one IPv4, one IPv6 or both.
	PodCIDRs List `json:"podCIDRs,omitempty"`
	// Bridge is the Open vSwitch bridge; it is made when missing.
	Bridge string `json:"bridge,omitempty"`
	// Datapath is "system" (kernel) or "netdev" (userspace).
	Datapath string `json:"datapath,omitempty"`
	// OVSDB and OpenFlow are endpoints: unix:PATH or tcp:LOOPBACK:PORT. An empty
	// OpenFlow is the bridge's .mgmt socket in RunDir.
	OVSDB    string `json:"ovsdb,omitempty"`
	OpenFlow string `json:"openflow,omitempty"`
	// OVSRunDir is where Open vSwitch keeps its sockets.
	OVSRunDir string `json:"ovsRunDir,omitempty"`

	Gateway Gateway `json:"gateway,omitzero"`
	// MTU of the Pods' interfaces and the gateway.
	MTU int `json:"mtu,omitempty"`
	// HostPrefix begins the names of the Pods' host interfaces.
	HostPrefix string `json:"hostPrefix,omitempty"`

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

	// NotReadyAfter is how long a port may be waited for before it is reported.
	NotReadyAfter Duration `json:"notReadyAfter,omitempty"`
	// SyncPeriod is how often the OpenFlow port list is read again and dead interfaces are swept.
	SyncPeriod Duration `json:"syncPeriod,omitempty"`
	// Verbosity of the log, as klog's -v.
	Verbosity int `json:"verbosity,omitempty"`
}

// Gateway is the node's own interface on the bridge.
type Gateway struct {
	Name string `json:"name,omitempty"`
	// Addresses of the gateway, without prefix lengths; the first of each Pod CIDR when empty.
	Addresses List `json:"addresses,omitempty"`
}

// Default returns the configuration of an empty file. PodCIDRs have no default.
func Default() *Config {
	return &Config{
		Bridge:         "br-int",
		Datapath:       "system",
		OVSDB:          "unix:/run/openvswitch/db.sock",
		OVSRunDir:      "/run/openvswitch",
		Gateway:        Gateway{Name: "antrea-gw0"},
		MTU:            1500,
		HostPrefix:     "pod",
		CNISocket:      cniapi.DefaultSocket,
		MetricsAddress: "127.0.0.1:10351",
		StateDir:       "/run/antrea-lite/leases",
		LockDir:        "/run/antrea-lite",
		NotReadyAfter:  Duration(30 * time.Second),
		SyncPeriod:     Duration(time.Minute),
	}
}

// OpenFlowEndpoint is OpenFlow, or the bridge's management socket.
func (c *Config) OpenFlowEndpoint() string {
	if c.OpenFlow != "" {
		return c.OpenFlow
	}
	return "unix:" + filepath.Join(c.OVSRunDir, c.Bridge+".mgmt")
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
