package networks

import (
	"context"
	"encoding/json"
	"net/netip"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// bridgeConf is the name of the bridge plugin's configuration file.
const bridgeConf = "10-bridge.conflist"

// bridge is the bridge plugin with addresses by host-local, and routes between
// the nodes that the harness makes.
type bridge struct{}

func (bridge) Install(ctx context.Context, c *cluster.Cluster) error {
	ranges, err := podRanges(ctx, c)
	if err != nil {
		return err
	}
	for i, n := range c.Nodes() {
		conf, err := bridgeConfig(ranges[i])
		if err != nil {
			return err
		}
		if err := n.WriteCNI(bridgeConf, conf); err != nil {
			return err
		}
	}
	return c.RoutePods(ranges)
}

// Rebooted makes the routes again, which were lost with the node's network.
func (bridge) Rebooted(ctx context.Context, c *cluster.Cluster) error {
	ranges, err := podRanges(ctx, c)
	if err != nil {
		return err
	}
	return c.RoutePods(ranges)
}

func bridgeConfig(cidrs []netip.Prefix) ([]byte, error) {
	type object map[string]any
	var ranges [][]object
	var routes []object
	for _, cidr := range cidrs {
		anywhere := "0.0.0.0/0"
		if cidr.Addr().Is6() {
			anywhere = "::/0"
		}
		ranges = append(ranges, []object{{"subnet": cidr.String()}})
		routes = append(routes, object{"dst": anywhere})
	}
	return json.MarshalIndent(object{"cniVersion": "1.0.0", "name": "bridge", "plugins": []object{
		{"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
			"ipam": object{"type": "host-local", "ranges": ranges, "routes": routes}},
		{"type": "portmap", "capabilities": object{"portMappings": true}},
	}}, "", "  ")
}
