// Package api is what `antrea-lite ports`, `status`, `check` and `flows` ask of
// the running agent: HTTP with JSON over the agent's unix socket, next to the
// CNI verbs. JSON output of the commands is these types as they are.
package api

import (
	"net/netip"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/health"
)

// Paths, all called with GET.
const (
	PathPorts  = "/v1/ports"
	PathStatus = "/v1/status"
	PathCheck  = "/v1/check"
	PathEvents = "/v1/events" // ?q= as PathFlows, or nothing for all
	PathFlows  = "/v1/flows"  // ?q=POD, NAMESPACE/POD, HOST-INTERFACE or the beginning of a CONTAINER-ID
)

// Port is one interface of a Pod.
type Port struct {
	Pod         string `json:"pod"` // namespace/name; "" without Kubernetes
	PodUID      string `json:"podUID,omitempty"`
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
	Host        string `json:"host"`
	OFPort      uint32 `json:"ofport,omitempty"`
	State       string `json:"state"`
	Waiting     string `json:"waiting,omitempty"`    // what it waits for, in words
	WaitingFor  string `json:"waitingFor,omitempty"` // the kind of it: podnet.Cause
	// WaitingSince is the beginning of the wait, Attempts counts the looks since the agent's start that ended without flows.
	WaitingSince time.Time      `json:"waitingSince,omitzero"`
	Attempts     int            `json:"attempts,omitempty"`
	MAC          string         `json:"mac"`
	IPs          []netip.Prefix `json:"ips"`
	VLAN         uint16         `json:"vlan,omitempty"`
	MTU          int            `json:"mtu,omitempty"`
	NetNS        string         `json:"netns,omitempty"`
	IPAM         string         `json:"ipam,omitempty"`
	Network      string         `json:"network,omitempty"`
	Created      time.Time      `json:"created"`
}

// Event is something that the owner of a Pod should see.
type Event struct {
	Time        time.Time `json:"time"`
	Type        string    `json:"type"`   // Normal or Warning, as in Kubernetes
	Reason      string    `json:"reason"` // NetworkNotReady or NetworkReady
	Pod         string    `json:"pod"`    // namespace/name; "" without Kubernetes
	PodUID      string    `json:"podUID,omitempty"`
	ContainerID string    `json:"containerID"`
	IfName      string    `json:"ifName"`
	Message     string    `json:"message"`
}

// Status is the agent at one moment.
type Status struct {
	Version  string         `json:"version"`
	PID      int            `json:"pid"`
	Started  time.Time      `json:"started"`
	Ready    bool           `json:"ready"`
	Parts    []health.State `json:"parts"`
	Bridge   Bridge         `json:"bridge"`
	Gateway  Gateway        `json:"gateway"`
	Ranges   []Range        `json:"ranges"`
	Ports    map[string]int `json:"ports"` // number of interfaces by state
	Sessions Sessions       `json:"sessions"`
}

// Bridge is the Open vSwitch bridge.
type Bridge struct {
	Name       string `json:"name"`
	Datapath   string `json:"datapath"`
	DatapathID string `json:"datapathID,omitempty"`
	OVSVersion string `json:"ovsVersion,omitempty"`
	DBSchema   string `json:"dbSchema,omitempty"`
}

// Gateway is the node's own interface on the bridge.
type Gateway struct {
	Name      string         `json:"name"`
	OFPort    uint32         `json:"ofport,omitempty"`
	MAC       string         `json:"mac,omitempty"`
	Addresses []netip.Prefix `json:"addresses"`
	MTU       int            `json:"mtu"`
}

// Range is the use of one range of addresses.
type Range struct {
	Prefix netip.Prefix `json:"prefix"`
	Taken  int          `json:"taken"`
	Size   string       `json:"size"`
	Full   bool         `json:"full"`
}

// Sessions are the two links to Open vSwitch.
type Sessions struct {
	OVSDB    Session `json:"ovsdb"`
	OpenFlow Session `json:"openflow"`
}

// Session is one link.
type Session struct {
	Endpoint   string    `json:"endpoint"`
	Ready      bool      `json:"ready"`
	Since      time.Time `json:"since,omitzero"`
	Reconnects int       `json:"reconnects"`
	LastError  string    `json:"lastError,omitempty"`
}

// Level is how a finding of `antrea-lite check` is.
type Level string

// Levels, from well to broken.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is one line of `antrea-lite check`.
type Finding struct {
	Level  Level  `json:"level"`
	What   string `json:"what"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// Flows are the flows of one interface.
type Flows struct {
	Port   Port     `json:"port"`
	Want   []string `json:"want"`   // as the pipeline builds them
	Switch []string `json:"switch"` // as the switch has them, with counters
	Error  string   `json:"error,omitempty"`
}
