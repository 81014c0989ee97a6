package agent

import (
	"context"
	"net"
	"strings"

	"github.com/antrea-lite/podnet/ofclient"
)

// dialOpenFlow returns the dialler of an endpoint that the configuration's check has passed.
func dialOpenFlow(endpoint string) func(context.Context) (net.Conn, error) {
	kind, address, _ := strings.Cut(endpoint, ":")
	if kind == "tcp" {
		return ofclient.DialTCP(address)
	}
	return ofclient.DialUnix(address)
}
