package nodenet

import (
	"net/netip"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/routes"
	"github.com/antrea-lite/podnet/ofclient/podflows"
)

// planRoutes returns the routes of the host to the ranges of the other nodes. A
// range of a family in which its node has no address is left out without a tunnel:
// there is no way to it.
func planRoutes(conf Config, peers []kube.Node) (list []routes.Route) {
	for _, n := range peers {
		for _, cidr := range n.PodCIDRs {
			r := routes.Route{Dst: cidr}
			if conf.Encap {
				// The first address of a range is its node's gateway; none but it stands there.
				r.Via, r.Device, r.MTU = cidr.Addr().Next(), conf.Gateway, conf.MTU
			} else if r.Via = n.Address(cidr.Addr()); !r.Via.IsValid() {
				continue
			}
			list = append(list, r)
		}
	}
	return list
}

// inside lists the ranges of all Pods of the cluster, as far as known.
func inside(own []netip.Prefix, peers []kube.Node) []netip.Prefix {
	out := append([]netip.Prefix(nil), own...)
	for _, n := range peers {
		out = append(out, n.PodCIDRs...)
	}
	return out
}

// TunnelPeers returns the other ends of the tunnel. outer6 tells that nodes
// speak IPv6 to each other; a node without an address of that family is left out.
func TunnelPeers(peers []kube.Node, outer6 bool) (list []podflows.Peer) {
	like := netip.IPv4Unspecified()
	if outer6 {
		like = netip.IPv6Unspecified()
	}
	for _, n := range peers {
		if a := n.Address(like); a.IsValid() {
			list = append(list, podflows.Peer{Addr: a, PodCIDRs: n.PodCIDRs})
		}
	}
	return list
}
