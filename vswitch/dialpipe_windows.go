package vswitch

import (
	"context"
	"net"

	"github.com/antrea-lite/podnet/internal/winpipe"
)

// DialPipe returns a Config.Dial for the named pipe on which ovsdb-server of
// Open vSwitch for Windows listens. path is the pipe's name
// (\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock) or that of the socket
// (C:\openvswitch\var\run\openvswitch\db.sock). A busy pipe is tried again for
// Config.DialTimeout.
func DialPipe(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return winpipe.Dial(ctx, path, "ovsdb-server") }
}
