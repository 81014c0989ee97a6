package ofclient

import (
	"context"
	"fmt"
	"net"
)

// DialUnix returns a Config.Dial for the unix socket at path: for Open vSwitch
// that is <rundir>/<bridge>.mgmt.
func DialUnix(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, fmt.Errorf("OpenFlow socket %s: %w (is ovs-vswitchd running, and does the bridge exist?)", path, err)
		}
		return nc, nil
	}
}

// DialTCP returns a Config.Dial for a bridge that listens on TCP, that is, one
// with a controller of the form ptcp:PORT:ADDRESS. OpenFlow has no
// authentication of its own: use a loopback address.
func DialTCP(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("OpenFlow address %s: %w (does the bridge have a controller ptcp:PORT:ADDRESS?)", addr, err)
		}
		return nc, nil
	}
}
