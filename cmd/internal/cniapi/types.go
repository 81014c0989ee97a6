package cniapi

import "net/netip"

// Paths of the verbs, all called with POST.
const (
	PathAdd    = "/v1/cni/add"
	PathCheck  = "/v1/cni/check"
	PathDelete = "/v1/cni/delete"
	PathGC     = "/v1/cni/gc"
	PathStatus = "/v1/cni/status"
)

// NoIPAM in Request.IPAM asks for an interface without addresses.
const NoIPAM = "none"

// Codes of errors. Those below 100 are the CNI specification's, the others are
// this plugin's own, as the specification provides.
const (
	CodeVersion     = 1
	CodeUnknown     = 3  // CHECK of a container the agent does not know
	CodeEnvironment = 4  // CNI_* variable missing or wrong
	CodeIO          = 5  // stdin, stdout
	CodeDecoding    = 6  // JSON
	CodeConfig      = 7  // network configuration
	CodeNetNS       = 8  // CNI_NETNS
	CodeTryAgain    = 11 // nothing is lost, the call may be repeated
	CodeUnavailable = 50 // STATUS: no ADD can be served
	CodeLimited     = 51 // STATUS: no ADD can be served, existing containers may have limited connectivity

	CodeFailed     = 100 // any other failure of the agent
	CodeAddress    = 101 // no address to be had: range used up, requested one taken
	CodeCheck      = 102 // CHECK found a difference
	CodeInterface  = 103 // the interface could not be made: netns gone, name taken
	CodePort       = 104 // Open vSwitch refuses the port or its flows
	CodeDelegated  = 105 // the delegated IPAM plugin failed
	CodeInterrupt  = 106 // the plugin was told to stop by a signal
	CodePodIsOther = 107 // another sandbox of the same Pod or a DEL overtook this ADD, or the Pod is gone
)

// Error is the body of every answer that is not 200.
type Error struct {
	Code    uint   `json:"code"`
	Msg     string `json:"msg"`
	Details string `json:"details,omitempty"` // the remedy
}

func (e *Error) Error() string {
	if e.Details == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Details
}

// Pod is what CNI_ARGS tells about the Kubernetes Pod; empty without Kubernetes.
type Pod struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// Address is one address with the prefix length of its subnet.
type Address struct {
	Prefix  netip.Prefix `json:"prefix"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
}

// Route is one route of the container.
type Route struct {
	Dst netip.Prefix `json:"dst"`
	GW  netip.Addr   `json:"gw,omitzero"`
	MTU int          `json:"mtu,omitempty"`
}

// DNS is a resolver's configuration.
type DNS struct {
	Servers []netip.Addr `json:"servers,omitempty"`
	Domain  string       `json:"domain,omitempty"`
	Search  []string     `json:"search,omitempty"`
	Options []string     `json:"options,omitempty"`
}

// Attachment names one interface of one container.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
}

// Request is the body of every call. A verb reads what it needs.
type Request struct {
	Attachment
	NetNS   string `json:"netns,omitempty"`
	Network string `json:"network,omitempty"` // name of the network configuration; GC does not leave it
	Pod     Pod    `json:"pod,omitzero"`

	MAC  string `json:"mac,omitempty"`
	MTU  int    `json:"mtu,omitempty"`
	VLAN int    `json:"vlan,omitempty"`
	// HostDevice names the host interface that is to be the port; others make it. "": the agent makes a cable.
	HostDevice string `json:"hostDevice,omitempty"`

	// IPAM says who owns the addresses: "" the agent, NoIPAM nobody, else the
	// plugin that the caller ran, which gave Addresses and Routes.
	IPAM      string       `json:"ipam,omitempty"`
	Addresses []Address    `json:"addresses,omitempty"`
	Routes    []Route      `json:"routes,omitempty"`
	WantIPs   []netip.Addr `json:"wantIPs,omitempty"` // asked of the agent's IPAM

	// DNS is for a Pod whose resolver the network configures (Windows).
	DNS DNS `json:"dns,omitzero"`

	// Want is what CHECK's prevResult says about this interface.
	Want *Want `json:"want,omitempty"`
	// Valid are the attachments of this network that GC must keep.
	Valid []Attachment `json:"valid,omitempty"`

	// TimeoutMillis is how long the caller waits; 0: not told.
	TimeoutMillis int64 `json:"timeoutMillis,omitempty"`
}

// Want is what a caller believes an interface to be. Empty fields are not compared.
type Want struct {
	MAC  string         `json:"mac,omitempty"`
	IPs  []netip.Prefix `json:"ips,omitempty"`
	Host string         `json:"host,omitempty"` // host interface name
}

// Interface is the answer to ADD.
type Interface struct {
	Host      string    `json:"host"` // host interface and OVS port name
	MAC       string    `json:"mac"`  // of the container's end
	MTU       int       `json:"mtu,omitempty"`
	Addresses []Address `json:"addresses,omitempty"`
	Routes    []Route   `json:"routes,omitempty"`
	OFPort    uint32    `json:"ofport,omitempty"`
}
