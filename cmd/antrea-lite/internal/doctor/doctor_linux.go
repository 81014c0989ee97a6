package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/agent"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/gateway"
)

// system looks at what the programs run on.
func (r *report) system() {
	r.kernel()
	r.user()
}

// network looks at the node's own part of the network.
func (r *report) network(_ context.Context, conf *config.Config, node config.Node, known bool) {
	r.gateway(conf, node, known)
	r.uplink(conf)
}

// socket looks at who may open the agent's socket.
func (r *report) socket(conf *config.Config) {
	fi, err := os.Stat(conf.CNISocket)
	if err != nil {
		return // the agent answered on it a moment ago
	}
	if mode := fi.Mode().Perm(); mode != 0o600 {
		r.fail("CNI socket", fmt.Sprintf("%s has mode %04o", conf.CNISocket, mode), "whoever opens it rules the node's network: chmod 600 it, and see who changed it")
		return
	}
	r.ok("CNI socket", conf.CNISocket+", mode 0600")
}

func (r *report) kernel() {
	release, err := agent.Kernel()
	switch {
	case err != nil:
		r.fail("kernel", err.Error(), "")
	case agent.Older(release, agent.MinKernel):
		r.fail("kernel", "Linux "+release, "update it to "+agent.MinKernel+" or later")
	default:
		r.ok("kernel", "Linux "+release)
	}
}

func (r *report) user() {
	if os.Geteuid() != 0 {
		r.warn("user", fmt.Sprintf("uid %d", os.Geteuid()), "run the check as root; sockets and settings may not be readable")
	}
}

// gateway compares the node's own interface with the configuration.
func (r *report) gateway(conf *config.Config, node config.Node, known bool) {
	what := "gateway " + conf.Gateway.Name
	state, err := gateway.Look(conf.Gateway.Name)
	if err != nil {
		r.fail(what, err.Error(), "the agent makes it when it starts")
		return
	}
	var wrong []string
	if !state.Up {
		wrong = append(wrong, "it is down")
	}
	if state.MTU != conf.MTU {
		wrong = append(wrong, fmt.Sprintf("MTU %d, configured %d", state.MTU, conf.MTU))
	}
	v4, v6 := false, false
	for i, p := range node.PodCIDRs {
		want := netip.PrefixFrom(node.Gateways[i], p.Bits())
		v4, v6 = v4 || p.Addr().Is4(), v6 || p.Addr().Is6()
		if !slices.Contains(state.Addresses, want) {
			wrong = append(wrong, want.String()+" is missing")
		}
	}
	for _, a := range state.Addresses {
		if known && !a.Addr().IsLinkLocalUnicast() && !slices.Contains(node.Gateways, a.Addr()) {
			wrong = append(wrong, a.String()+" does not belong there")
		}
	}
	if wrong != nil {
		r.fail(what, strings.Join(wrong, "; "), "the agent corrects it within moments; if it comes back, find who else changes it")
	} else {
		r.ok(what, fmt.Sprintf("up, MTU %d, %s", state.MTU, joinPrefixes(state.Addresses)))
	}
	bad := 0
	for _, s := range gateway.Settings(conf.Gateway.Name, v4, v6) {
		now, err := s.Read()
		switch {
		case err != nil:
			r.fail("kernel setting", err.Error(), "")
			bad++
		case now != s.Value:
			r.fail("kernel setting", fmt.Sprintf("%s is %s, has to be %s: %s", s.Path, now, s.Value, s.Why), "the agent sets it; if it comes back, find who else does (sysctl.d, NetworkManager)")
			bad++
		}
	}
	if bad == 0 && known {
		r.ok("kernel settings", "as the gateway needs them")
	}
}

// uplink compares the MTU with that of the interface that leads out.
func (r *report) uplink(conf *config.Config) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Dst: nil}, netlink.RT_FILTER_DST)
	if err != nil {
		r.warn("MTU", "the default route cannot be read: "+err.Error(), "")
		return
	}
	for _, route := range routes {
		link, err := netlink.LinkByIndex(route.LinkIndex)
		if err != nil {
			continue
		}
		if mtu := link.Attrs().MTU; mtu < conf.MTU {
			r.warn("MTU", fmt.Sprintf("Pods have %d, %s has %d", conf.MTU, link.Attrs().Name, mtu), fmt.Sprintf("large packets to other nodes are fragmented or lost: set mtu: %d", mtu))
			return
		}
	}
	r.ok("MTU", fmt.Sprintf("Pods have %d, no default route has less", conf.MTU))
}
