package ofclient

import (
	"context"
	"fmt"
	"net"

	"github.com/antrea-lite/podnet/internal/winpipe"
)

// DialPipe returns a Config.Dial for the named pipe that Open vSwitch for
// Windows has in place of <rundir>/<bridge>.mgmt. path is the pipe's name
// (\\.\pipe\C:openvswitchvarrunopenvswitchbr-int.mgmt) or that of the socket
// (C:\openvswitch\var\run\openvswitch\br-int.mgmt). A busy pipe is tried again
// for Config.DialTimeout.
func DialPipe(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		nc, err := winpipe.Dial(ctx, path, "ovs-vswitchd")
		if err != nil {
			return nil, fmt.Errorf("OpenFlow %w (does the bridge exist?)", err)
		}
		return nc, nil
	}
}
