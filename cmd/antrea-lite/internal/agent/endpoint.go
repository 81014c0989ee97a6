package agent

import (
	"context"
	"net"
	"strings"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/vswitch"
)

// OVSDB is what the vswitch client needs to reach the endpoint of a configuration whose check has passed.
func OVSDB(conf *config.Config) vswitch.Config {
	c := vswitch.Config{Endpoint: conf.OVSDB, Bridge: conf.Bridge, Datapath: conf.Datapath}
	if kind, address, _ := strings.Cut(conf.OVSDB, ":"); kind != "tcp" {
		c.Dial = localOVSDB(address)
	}
	return c
}

// OpenFlow returns the dialler of an endpoint that the configuration's check has passed.
func OpenFlow(conf *config.Config) func(context.Context) (net.Conn, error) {
	kind, address, _ := strings.Cut(conf.OpenFlowEndpoint(), ":")
	if kind == "tcp" {
		return ofclient.DialTCP(address)
	}
	return localOpenFlow(address)
}
