package nodenet

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/routes"
	"github.com/antrea-lite/podnet/ofclient/podflows"
)

// planRoutes returns the routes of the host to the ranges of the other nodes, and
// why there is no way to some: their node has no address of the family in question.
func planRoutes(conf Config, peers []kube.Node) (list []routes.Route, unreached []error) {
	for _, n := range peers {
		if conf.Encap && !n.Address(outer(conf.Outer6)).IsValid() {
			unreached = append(unreached, noAddress(n, n.PodCIDRs, conf.Outer6))
			continue
		}
		for _, cidr := range n.PodCIDRs {
			ours := slices.ContainsFunc(conf.Own, func(p netip.Prefix) bool { return p.Addr().Is4() == cidr.Addr().Is4() })
			if conf.Encap && !ours {
				continue // the gateway has no address of that family, and the kernel may not have it at all
			}
			r := routes.Route{Dst: cidr, Node: n.Name}
			if conf.Encap {
				// The first address of a range is its node's gateway; none but it stands there.
				r.Via, r.Device, r.MTU = cidr.Addr().Next(), conf.Gateway, conf.MTU
			} else if r.Via = n.Address(cidr.Addr()); !r.Via.IsValid() {
				if ours {
					unreached = append(unreached, noAddress(n, []netip.Prefix{cidr}, cidr.Addr().Is6()))
				}
				continue
			}
			list = append(list, r)
		}
	}
	return list, unreached
}

func noAddress(n kube.Node, ranges []netip.Prefix, v6 bool) error {
	family := "IPv4"
	if v6 {
		family = "IPv6"
	}
	return fmt.Errorf("node %s: no way to %v: it has no InternalIP of %s among %v: give its kubelet one with --node-ip", n.Name, ranges, family, n.Addresses)
}

// outer is like the addresses by which nodes speak to each other.
func outer(six bool) netip.Addr {
	if six {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// Sound returns the nodes without ranges and addresses that cannot be theirs, and
// why each was left out: one Node object that somebody got wrong must not take
// our own Pods' range away, nor keep the others dark. own are this node's ranges.
func Sound(own []netip.Prefix, nodes []kube.Node) (sound []kube.Node, bad []error) {
	taken := slices.Clone(own)
	for _, n := range nodes {
		s := kube.Node{Name: n.Name}
		for _, a := range n.Addresses {
			if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.Is4In6() {
				bad = append(bad, fmt.Errorf("kubernetes: Node %s: address %s is none of a node", n.Name, a))
				continue
			}
			s.Addresses = append(s.Addresses, a)
		}
		for _, p := range n.PodCIDRs {
			if p.Bits() == 0 || p.Addr().Is4In6() {
				bad = append(bad, fmt.Errorf("kubernetes: Node %s: podCIDR %s is none of a node", n.Name, p))
				continue
			}
			if i := slices.IndexFunc(taken, p.Overlaps); i >= 0 {
				bad = append(bad, fmt.Errorf("kubernetes: Node %s: podCIDR %s overlaps %s of another: each node needs a range of its own", n.Name, p, taken[i]))
				continue
			}
			s.PodCIDRs, taken = append(s.PodCIDRs, p), append(taken, p)
		}
		if len(s.PodCIDRs) > 0 && len(s.Addresses) > 0 {
			sound = append(sound, s)
		}
	}
	return sound, bad
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
	for _, n := range peers {
		if a := n.Address(outer(outer6)); a.IsValid() {
			list = append(list, podflows.Peer{Addr: a, PodCIDRs: n.PodCIDRs})
		}
	}
	return list
}
