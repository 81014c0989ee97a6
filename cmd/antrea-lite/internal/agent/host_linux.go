package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/socket"
	"github.com/antrea-lite/podnet/ofclient"
)

// mtuByOVS: ovs-vswitchd sets the MTU of the gateway, to the least of all ports' unless told otherwise.
const mtuByOVS = true

// listen opens the socket on which the CNI plugin finds the agent.
func listen(path string) (net.Listener, error) { return socket.Listen(path) }

// capabilities are what the runtime may ask of the plugin.
func capabilities() map[string]bool { return map[string]bool{"ips": true, "mac": true} }

// localOVSDB leaves the unix socket to the client.
func localOVSDB(string) func(context.Context) (net.Conn, error) { return nil }

func localOpenFlow(path string) func(context.Context) (net.Conn, error) {
	return ofclient.DialUnix(path)
}

// hostPorts tells that the portmap plugin of containernetworking serves hostPort here.
const hostPorts = true

// CheckHost refuses a host on which the agent cannot work.
func CheckHost() error {
	release, err := Kernel()
	if err != nil {
		return err
	}
	if Older(release, MinKernel) {
		return fmt.Errorf("kernel %s is too old: update it to Linux %s or later", release, MinKernel)
	}
	return nil
}

// Kernel returns the kernel's release.
func Kernel() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

// bootID tells one boot from another; "" where the kernel does not say.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
