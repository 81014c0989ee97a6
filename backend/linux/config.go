package linux

import (
	"fmt"
	"strings"

	"github.com/antrea-lite/podnet/internal/derive"
	"github.com/antrea-lite/podnet/podnet"
)

const (
	defaultPrefix = "pod"
	defaultMTU    = 1500

	maxName = derive.MaxName
	minHash = derive.MinHash

	minMTU     = 68   // the smallest IPv4 MTU (RFC 791) and the kernel's lower bound for a veth
	minMTUIPv6 = 1280 // RFC 8200; below it the kernel takes IPv6 off the interface
	maxMTU     = 65535
)

// Config says how a Linker makes interfaces. The zero Config is useful.
type Config struct {
	// HostPrefix begins the names of the host's ends: 1 to 7 characters; "" means "pod".
	HostPrefix string
	// MTU in bytes of interfaces whose Request names none; 0 means 1500.
	MTU int
	// DisableTXChecksum turns TX checksum offload off inside the container. The
	// userspace datapath of Open vSwitch needs it: without, TCP stalls while ping works.
	DisableTXChecksum bool
	// QuietHost keeps the host's own stack off the host's ends. The userspace
	// datapath needs it: it reads a copy of each frame, and the host would answer
	// the Pods' ARP for the gateway by itself. The kernel datapath takes every frame.
	QuietHost bool
	// LateDevices accepts a Request.HostDevice that does not exist yet. Readiness
	// has to be that of NewAsyncReadiness, which sets the device up when it appears.
	LateDevices bool
}

// withDefaults fills the zero fields and refuses values that no interface can have.
func (c Config) withDefaults() (Config, error) {
	if c.HostPrefix == "" {
		c.HostPrefix = defaultPrefix
	}
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	if err := checkName(c.HostPrefix); err != nil {
		return c, fmt.Errorf("%w: host interface prefix: %w", podnet.ErrBadRequest, err)
	}
	if len(c.HostPrefix) > maxName-minHash {
		return c, fmt.Errorf("%w: host interface prefix %q has %d characters; use %d at most, so that the rest of a name tells interfaces apart",
			podnet.ErrBadRequest, c.HostPrefix, len(c.HostPrefix), maxName-minHash)
	}
	if c.MTU < minMTU || c.MTU > maxMTU {
		return c, fmt.Errorf("%w: MTU %d: want %d to %d", podnet.ErrBadRequest, c.MTU, minMTU, maxMTU)
	}
	return c, nil
}

// checkName tells whether the kernel takes s as the name of an interface
// (dev_valid_name) and the CNI specification does too.
func checkName(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("interface name is empty; name one, such as eth0")
	case len(s) > maxName:
		return fmt.Errorf("interface name %q has %d characters; Linux takes %d at most", s, len(s), maxName)
	case s == "." || s == "..":
		return fmt.Errorf("interface name %q is a directory; name one such as eth0", s)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("/:%", r) }); i >= 0 {
		return fmt.Errorf("interface name %q has a character that Linux refuses at position %d; use letters, digits, '-', '_' and '.'", s, i+1)
	}
	return nil
}
