package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

const (
	defaultTimeout = 90 * time.Second
	maxTimeout     = 3600 // seconds

	// minMTU is what IPv4 asks of every link (RFC 791); whether IPv6's 1280 is needed, the agent knows.
	minMTU = 576
	maxMTU = 65535

	maxDevice = 15 // IFNAMSIZ less its zero
)

// netConf is a network configuration as this plugin reads it.
type netConf struct {
	CNIVersion string    `json:"cniVersion"`
	Name       string    `json:"name"`
	IPAM       *ipamConf `json:"ipam"`
	DNS        types.DNS `json:"dns"`

	AgentSocket    string `json:"agentSocket"`
	TimeoutSeconds int    `json:"timeoutSeconds"`
	VLAN           int    `json:"vlan"`
	MTU            int    `json:"mtu"`
	HostDevice     string `json:"hostDevice"`

	// StatusGraceSeconds is how long STATUS calls the node well after the last
	// moment at which it was, the time of change of ReadyFile. The agent writes both.
	StatusGraceSeconds int    `json:"statusGraceSeconds"`
	ReadyFile          string `json:"readyFile"`

	RuntimeConfig wishes `json:"runtimeConfig"`
	Args          struct {
		CNI wishes `json:"cni"`
	} `json:"args"`

	PrevResult json.RawMessage       `json:"prevResult"`
	Valid      *[]types.GCAttachment `json:"cni.dev/valid-attachments"`
}

// ipamConf tells who owns the addresses. Ranges and Subnet only tell whether host-local was given ranges of its own.
type ipamConf struct {
	Type   string          `json:"type"`
	Subnet json.RawMessage `json:"subnet"`
	Ranges json.RawMessage `json:"ranges"`
}

// wishes is what a runtime may ask for, by capability or by args.
type wishes struct {
	IPs []string `json:"ips"`
	MAC string   `json:"mac"`
	DNS *struct {
		Servers  []string `json:"servers"`
		Searches []string `json:"searches"`
		Options  []string `json:"options"`
	} `json:"dns"`
	HostDevice string `json:"hostDevice"`
}

// hostDevice is the host interface that others make for this container. A
// configuration is for many containers, so the runtime's word comes first.
func (c *netConf) hostDevice() string {
	return cmp.Or(c.RuntimeConfig.HostDevice, c.Args.CNI.HostDevice, c.HostDevice)
}

// resolver is the resolver's configuration: what the runtime asks for by the dns
// capability (on Windows kubelet has no resolv.conf to write it to), else the
// network's own, else nothing.
func (c *netConf) resolver() types.DNS {
	if d := c.RuntimeConfig.DNS; d != nil {
		return types.DNS{Nameservers: d.Servers, Domain: c.DNS.Domain, Search: d.Searches, Options: d.Options}
	}
	return c.DNS
}

// parseNetConf reads and checks a network configuration. Unknown keys are
// other plugins' business. Errors are *types.Error with code 6 or 7.
func parseNetConf(stdin []byte) (*netConf, error) {
	conf := &netConf{}
	if err := json.Unmarshal(stdin, conf); err != nil {
		return nil, jsonError(err)
	}
	if bytes.Equal(conf.PrevResult, []byte("null")) {
		conf.PrevResult = nil
	}
	if conf.AgentSocket == "" {
		conf.AgentSocket = cniapi.DefaultSocket
	}
	if !filepath.IsAbs(conf.AgentSocket) {
		return nil, confError("agentSocket", conf.AgentSocket, "use an absolute path")
	}
	return conf, nil
}

// validate checks what only ADD uses: a DEL must not fail for a value that
// somebody spoilt after the ADD.
func (c *netConf) validate() error {
	device := c.hostDevice()
	switch {
	case len(device) > maxDevice || strings.ContainsAny(device, "/: \t\n"):
		return confError("hostDevice", device, fmt.Sprintf("use the name of a network interface, %d characters at most", maxDevice))
	case c.TimeoutSeconds < 0 || c.TimeoutSeconds > maxTimeout:
		return confError("timeoutSeconds", fmt.Sprint(c.TimeoutSeconds), fmt.Sprintf("use 1 to %d, or 0 for 90", maxTimeout))
	case c.VLAN < 0 || c.VLAN > 4094:
		return confError("vlan", fmt.Sprint(c.VLAN), "an access VLAN is 1 to 4094, 0 means untagged")
	case c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU):
		return confError("mtu", fmt.Sprint(c.MTU), fmt.Sprintf("use %d to %d, or 0 for the agent's", minMTU, maxMTU))
	}
	return nil
}

// timeout is how long one call may take. What ADD refuses counts as not given.
func (c *netConf) timeout() time.Duration {
	if c.TimeoutSeconds <= 0 || c.TimeoutSeconds > maxTimeout {
		return defaultTimeout
	}
	return time.Duration(c.TimeoutSeconds) * time.Second
}

// owner says who owns the addresses, in the words of cniapi.Request.IPAM.
func (c *netConf) owner() string {
	switch {
	case c.IPAM == nil:
		return ""
	case c.IPAM.Type == "":
		return cniapi.NoIPAM
	case c.IPAM.Type == "antrea-lite":
		return ""
	case c.IPAM.Type == "host-local" && len(c.IPAM.Subnet) == 0 && len(c.IPAM.Ranges) == 0:
		return ""
	}
	return c.IPAM.Type
}

// delegateFor is the IPAM plugin to run for a container, or "".
func (c *netConf) delegateFor(netns string) string {
	if sharesNetwork(netns) {
		return ""
	}
	return c.delegate()
}

// delegate is the IPAM plugin of the network, or "".
func (c *netConf) delegate() string {
	if owner := c.owner(); owner != cniapi.NoIPAM {
		return owner
	}
	return ""
}

func confError(key, value, remedy string) error {
	return types.NewError(cniapi.CodeConfig, fmt.Sprintf("network configuration: %s %q is not usable", key, value), remedy)
}

// jsonError names the key at fault.
func jsonError(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		key := mismatch.Field
		if key == "" {
			key = "the whole"
		}
		return types.NewError(cniapi.CodeConfig, fmt.Sprintf("network configuration: %s is a JSON %s", key, mismatch.Value),
			"it has to be "+kindName(mismatch.Type.String()))
	}
	return types.NewError(cniapi.CodeDecoding, "the network configuration on stdin is not JSON: "+err.Error(), "correct the file in the CNI configuration directory")
}

func kindName(goType string) string {
	switch {
	case strings.HasPrefix(goType, "int"):
		return "a number"
	case goType == "string":
		return "a string"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "an object"
}
