package config

import (
	"fmt"
	"path/filepath"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// DefaultFile is read when no --config is given; it may be missing.
const DefaultFile = "/etc/antrea-lite/agent.yaml"

const (
	localKind    = "unix"
	localForm    = "unix:/absolute/path"
	confDirLike  = "/etc/cni/net.d"
	withoutGW    = false // the gateway is what the node's own traffic to Pods goes through
	gatewayNamed = "antrea-gw0"

	defaultReadiness = Sync
	uplinkMovable    = true
	syncPossible     = true
)

// hostDefaults sets the defaults that are paths and endpoints.
func (c *Config) hostDefaults() {
	c.OVSDB = "unix:/run/openvswitch/db.sock"
	c.OVSRunDir = "/run/openvswitch"
	c.CNISocket = cniapi.DefaultSocket
	c.StateDir = "/run/antrea-lite/leases"
	c.LockDir = "/run/antrea-lite"
}

func checkLocalEndpoint(path string) bool { return filepath.IsAbs(path) }

func checkSocket(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("cniSocket: %q is no absolute path", path)
	}
	// sun_path has 108 bytes, one of them for the final zero.
	if len(path) > 107 {
		return fmt.Errorf("cniSocket: the path has %d characters: a unix socket's may have 107", len(path))
	}
	return nil
}
