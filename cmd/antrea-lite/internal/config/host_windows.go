package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/internal/winpipe"
)

// DefaultFile is read when no --config is given; it may be missing.
const DefaultFile = `C:\etc\antrea-lite\agent.yaml`

const (
	localKind    = "npipe"
	localForm    = `npipe:\\.\pipe\NAME`
	confDirLike  = `C:\etc\cni\net.d`
	withoutGW    = true // somebody has to make the gateway's adapter; Pods reach each other without
	gatewayNamed = ""

	defaultReadiness = Async
	uplinkMovable    = false // HNS owns the adapter
	syncPossible     = false // the interface appears after ADD has returned
)

// hostDefaults sets the defaults that are paths and endpoints. Where kubelet and
// containerd on Windows have a habit it is theirs: the paths of Linux on drive C.
func (c *Config) hostDefaults() {
	c.OVSRunDir = `C:\openvswitch\var\run\openvswitch`
	c.OVSDB = `npipe:\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock`
	c.CNISocket = cniapi.DefaultSocket
	c.StateDir = `C:\var\run\antrea-lite\leases`
	c.LockDir = `C:\var\run\antrea-lite`
}

// checkLocalEndpoint takes the name of a pipe, or the path that Open vSwitch has for the socket.
func checkLocalEndpoint(path string) bool {
	_, err := winpipe.Name(path)
	return err == nil && filepath.IsAbs(path)
}

func checkSocket(path string) error {
	name, ok := strings.CutPrefix(path, `\\.\pipe\`)
	if !ok || name == "" || strings.ContainsAny(name, `\/`) {
		return fmt.Errorf(`cniSocket: %q is no named pipe: use the form \\.\pipe\antrea-lite-cni`, path)
	}
	// CreateNamedPipe's limit on the whole name.
	if len(path) > 256 {
		return fmt.Errorf("cniSocket: the name has %d characters: a named pipe's may have 256", len(path))
	}
	return nil
}
