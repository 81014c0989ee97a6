package agent

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/socket"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/vswitch"
)

// minBuild is Windows Server 2019, the oldest whose HNS has network namespaces for Pods.
const minBuild = 17763

// mtuByOVS: on Windows Open vSwitch sets no MTU.
const mtuByOVS = false

// hostPorts tells that the portmap plugin of containernetworking serves hostPort; it is for Linux.
const hostPorts = false

// listen opens the named pipe on which the CNI plugin finds the agent.
func listen(path string) (net.Listener, error) { return socket.Listen(path) }

// capabilities are what the runtime may ask of the plugin. The resolver is the
// network's business here: there is no file that kubelet could write.
func capabilities() map[string]bool { return map[string]bool{"ips": true, "mac": true, "dns": true} }

func localOVSDB(path string) func(context.Context) (net.Conn, error) { return vswitch.DialPipe(path) }

func localOpenFlow(path string) func(context.Context) (net.Conn, error) {
	return ofclient.DialPipe(path)
}

// CheckHost refuses a host on which the agent cannot work.
func CheckHost() error {
	v := windows.RtlGetVersion()
	if v.MajorVersion < 10 || v.BuildNumber < minBuild {
		return fmt.Errorf("this is Windows %d.%d build %d, which is too old: use Windows Server 2019 (build %d) or later", v.MajorVersion, v.MinorVersion, v.BuildNumber, minBuild)
	}
	return nil
}

// bootID tells one boot from another; "" where Windows does not count its boots.
func bootID() string {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer key.Close()
	id, _, err := key.GetIntegerValue("BootId")
	if err != nil {
		return ""
	}
	return strconv.FormatUint(id, 10)
}
