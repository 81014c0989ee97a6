package windows

import (
	"fmt"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/internal/derive"
	"github.com/antrea-lite/podnet/podnet"
)

// DefaultNetwork is the name of the HNS network when Config names none.
const DefaultNetwork = "podnet"

const (
	defaultPrefix  = "pod"
	defaultMTU     = 1500
	defaultTimeout = 20 * time.Second
	defaultCalls   = 4

	minMTU     = 352  // Windows' lower bound for IPv4
	minMTUIPv6 = 1280 // RFC 8200
	maxMTU     = 65535
)

// Config says how a Linker makes interfaces. Only HNS is required.
type Config struct {
	// HNS is the Host Network Service: *HCN on a node.
	HNS HNS
	// Network is the HNS network on which endpoints are made: its Name ("" means
	// DefaultNetwork), and what EnsureNetwork needs to make it where it is
	// missing. Its Type is Transparent.
	Network Network
	// HostPrefix begins the names of the endpoints: 1 to 7 letters and digits; "" means "pod".
	HostPrefix string
	// MTU in bytes of interfaces whose Request names none; 0 means 1500. It is
	// set by the late step: the interface exists only after Link.
	MTU int
	// DNS is for Requests that name none.
	DNS podnet.DNS

	// CallTimeout is how long a call to HNS is waited for; 0 means 20 s.
	CallTimeout time.Duration
	// MaxCalls is how many calls of one kind may be under way; 0 means 4.
	MaxCalls int
	// ObserveCall, if set, receives every call to HNS that returned. It must not
	// block or call the Linker.
	ObserveCall func(Call)
}

// withDefaults fills the zero fields and refuses values that cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.HNS == nil {
		return c, fmt.Errorf("%w: no HNS", podnet.ErrBadRequest)
	}
	if c.Network.Name == "" {
		c.Network.Name = DefaultNetwork
	}
	if c.Network.Type == "" {
		c.Network.Type = Transparent
	}
	if c.HostPrefix == "" {
		c.HostPrefix = defaultPrefix
	}
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = defaultTimeout
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = defaultCalls
	}
	switch {
	case c.Network.Type != Transparent:
		return c, fmt.Errorf("%w: HNS network %q of type %q; Open vSwitch sees the endpoints of networks of type %q only", podnet.ErrBadRequest, c.Network.Name, c.Network.Type, Transparent)
	case len(c.HostPrefix) > derive.MaxName-derive.MinHash:
		return c, fmt.Errorf("%w: host interface prefix %q has %d characters; use %d at most, so that the rest of a name tells interfaces apart",
			podnet.ErrBadRequest, c.HostPrefix, len(c.HostPrefix), derive.MaxName-derive.MinHash)
	case strings.ContainsFunc(c.HostPrefix, func(r rune) bool { return !isNameRune(r) }):
		return c, fmt.Errorf("%w: host interface prefix %q: use letters, digits and '-'", podnet.ErrBadRequest, c.HostPrefix)
	case c.MTU < minMTU || c.MTU > maxMTU:
		return c, fmt.Errorf("%w: MTU %d: want %d to %d", podnet.ErrBadRequest, c.MTU, minMTU, maxMTU)
	case c.CallTimeout < 0:
		return c, fmt.Errorf("%w: time limit %s of calls to HNS is negative", podnet.ErrBadRequest, c.CallTimeout)
	case c.MaxCalls < 0:
		return c, fmt.Errorf("%w: %d calls to HNS at a time; want 1 or more", podnet.ErrBadRequest, c.MaxCalls)
	}
	return c, nil
}

// isNameRune: what is a word to Windows, PowerShell, Open vSwitch and OpenFlow.
func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-'
}
