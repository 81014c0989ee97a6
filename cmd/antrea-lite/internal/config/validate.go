package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxIfName is the longest interface name, and the longest that OpenFlow shows whole.
	maxIfName = 15
	// maxBridgeName leaves room for what Open vSwitch itself appends to socket names; it is an interface name, too.
	maxBridgeName = maxIfName
	// maxHostPrefix leaves at least 12 characters of hash, so that two Pods do not meet.
	maxHostPrefix = 4

	defaultMTU = 1500

	minMTU4 = 576  // RFC 791
	minMTU6 = 1280 // RFC 8200
	maxMTU  = 65535
)

// Node is what the checked settings mean.
type Node struct {
	PodCIDRs []netip.Prefix
	Gateways []netip.Addr // one for each Pod CIDR, in the same order
}

// Check verifies every setting and returns what they mean. The first mistake
// is the error; it names the key, the value and the remedy.
func (c *Config) Check() (Node, error) {
	for _, check := range []func() error{c.checkNames, c.checkEndpoints, c.checkPaths, c.checkNumbers, c.checkCluster} {
		if err := check(); err != nil {
			return Node{}, err
		}
	}
	var node Node
	for _, s := range c.PodCIDRs {
		p, err := parseCIDR(s)
		if err != nil {
			return Node{}, err
		}
		for _, q := range node.PodCIDRs {
			if q.Addr().Is4() == p.Addr().Is4() {
				return Node{}, fmt.Errorf("podCIDRs: %s and %s are of the same family: give one IPv4 and one IPv6 range at most", q, p)
			}
		}
		node.PodCIDRs = append(node.PodCIDRs, p)
		node.Gateways = append(node.Gateways, p.Addr().Next())
	}
	if len(node.PodCIDRs) == 0 && c.Kubernetes.NodeName != "" {
		return node, nil // the Node object has them
	}
	if len(node.PodCIDRs) == 0 {
		return Node{}, fmt.Errorf("podCIDRs: missing: give this node's Pod range in the configuration file or with --pod-cidrs 10.10.0.0/24")
	}
	if err := c.checkGateways(&node); err != nil {
		return Node{}, err
	}
	return node, c.checkMTU(node)
}

func parseCIDR(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("podCIDRs: %q is no CIDR: use the form 10.10.0.0/24 or fd00:10::/64", s)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("podCIDRs: %s has host bits set: the network is %s", s, p.Masked())
	}
	a := p.Addr()
	if a.Is4In6() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.Zone() != "" {
		return p, fmt.Errorf("podCIDRs: %s cannot hold Pods: use private unicast addresses such as 10.10.0.0/24 or fd00:10::/64", s)
	}
	if free := a.BitLen() - p.Bits(); free < 2 {
		return p, fmt.Errorf("podCIDRs: %s is too small: the gateway and one Pod need a /%d at least", s, a.BitLen()-2)
	}
	if p.Bits() < 8 {
		return p, fmt.Errorf("podCIDRs: %s is too large for one node: use /8 or longer", s)
	}
	return p, nil
}

func (c *Config) checkGateways(node *Node) error {
	named := make([]bool, len(node.PodCIDRs))
	for _, s := range c.Gateway.Addresses {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return fmt.Errorf("gateway.addresses: %q is no address: use the form 10.10.0.1, the length is the Pod CIDR's", s)
		}
		i := slices.IndexFunc(node.PodCIDRs, func(p netip.Prefix) bool { return p.Contains(a) })
		switch {
		case i < 0:
			return fmt.Errorf("gateway.addresses: %s is in none of the Pod CIDRs %v: use an address of a range or add the range of its family", a, node.PodCIDRs)
		case named[i]:
			return fmt.Errorf("gateway.addresses: %s and %s are both in %s: one is enough", node.Gateways[i], a, node.PodCIDRs[i])
		case a == node.PodCIDRs[i].Addr() || a.Is4() && a == lastAddr(node.PodCIDRs[i]):
			return fmt.Errorf("gateway.addresses: %s is the network or broadcast address of %s: %s would do", a, node.PodCIDRs[i], node.PodCIDRs[i].Addr().Next())
		}
		node.Gateways[i], named[i] = a, true
	}
	if c.Gateway.Name == "" && len(c.Gateway.Addresses) > 0 {
		return fmt.Errorf("gateway.addresses: %s are given and gateway.name is not: name the gateway's adapter", c.Gateway.Addresses)
	}
	return nil
}

func (c *Config) checkMTU(node Node) error {
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	low, why := minMTU4, "IPv4"
	if slices.ContainsFunc(node.PodCIDRs, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		low, why = minMTU6, "IPv6"
	}
	if c.MTU < low || c.MTU > maxMTU {
		return fmt.Errorf("mtu: %d: %s needs at least %d, and %d is the most", c.MTU, why, low, maxMTU)
	}
	return nil
}

func (c *Config) checkCluster() error {
	t := c.Traffic
	switch {
	case t.Mode != NoEncap && t.Mode != Encap:
		return fmt.Errorf("traffic.mode: %q is unknown: use noEncap or encap", t.Mode)
	case t.Tunnel != Geneve && t.Tunnel != VXLAN:
		return fmt.Errorf("traffic.tunnel: %q is unknown: use geneve or vxlan", t.Tunnel)
	case t.PrepareUplink && !uplinkMovable:
		return fmt.Errorf("traffic.prepareUplink: not possible on this system: `antrea-lite prepare-node` does what Windows needs")
	case t.PrepareUplink && (t.Mode != Encap || c.Datapath != "netdev"):
		return fmt.Errorf("traffic.prepareUplink: traffic.mode is %s and datapath %s: only a tunnel (encap) on the userspace datapath (netdev) needs it; leave it out", t.Mode, c.Datapath)
	case t.UplinkBridge == c.Bridge || t.UplinkBridge == c.Gateway.Name:
		return fmt.Errorf("traffic.uplinkBridge: %q is the name of the Pods' bridge or of the gateway: use another such as br-phy", t.UplinkBridge)
	case c.Kubernetes.UnavailableAfter < 0:
		return fmt.Errorf("kubernetes.unavailableAfter: %s is negative: use 0s to tell at once", c.Kubernetes.UnavailableAfter)
	case c.Kubernetes.NodeName == "" && c.Kubernetes.Kubeconfig != "":
		return fmt.Errorf("kubernetes.kubeconfig: %q without kubernetes.nodeName: name this machine's Node (--node-name)", c.Kubernetes.Kubeconfig)
	}
	return nil
}

func (c *Config) checkNames() error {
	for _, n := range []struct {
		key, value string
		max        int
	}{{"bridge", c.Bridge, maxBridgeName}, {"gateway.name", c.Gateway.Name, maxIfName}, {"hostPrefix", c.HostPrefix, maxHostPrefix}, {"traffic.uplinkBridge", c.Traffic.UplinkBridge, maxBridgeName}} {
		if n.key == "gateway.name" && n.value == "" && withoutGW {
			continue
		}
		if n.value == "" || len(n.value) > n.max || strings.ContainsAny(n.value, "/: \t\n") || strings.Trim(n.value, ".") == "" {
			return fmt.Errorf("%s: %q is no usable name: use 1 to %d characters without '/', ':' and blanks", n.key, n.value, n.max)
		}
	}
	if c.Bridge == c.Gateway.Name {
		return fmt.Errorf("gateway.name: %q is the bridge's name, whose own port cannot be the gateway: use another such as antrea-gw0", c.Gateway.Name)
	}
	if c.Datapath != "system" && c.Datapath != "netdev" {
		return fmt.Errorf("datapath: %q is unknown: use system (kernel) or netdev (userspace)", c.Datapath)
	}
	if c.HNS.Network == "" {
		return fmt.Errorf("hns.network: missing: name the HNS network, such as antrea-lite")
	}
	return nil
}

func (c *Config) checkEndpoints() error {
	for _, e := range []struct{ key, value string }{{"ovsdb", c.OVSDB}, {"openflow", c.OpenFlowEndpoint()}} {
		kind, rest, _ := strings.Cut(e.value, ":")
		switch {
		case kind == localKind && checkLocalEndpoint(rest):
		case kind == "tcp":
			addr, err := netip.ParseAddrPort(rest)
			if err != nil {
				return fmt.Errorf("%s: %q has no address and port: use the form tcp:127.0.0.1:6640", e.key, e.value)
			}
			// Whoever reaches the port rules the node's network; TCP has no password.
			if !addr.Addr().IsLoopback() {
				return fmt.Errorf("%s: %q is not on the loopback interface: Open vSwitch runs on the same node, use 127.0.0.1 or %s", e.key, e.value, localForm)
			}
		default:
			return fmt.Errorf("%s: %q is no endpoint: use %s or tcp:127.0.0.1:PORT", e.key, e.value, localForm)
		}
	}
	if c.MetricsAddress == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.MetricsAddress)
	if err == nil && host != "" {
		_, err = netip.ParseAddr(host)
	}
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 0 || n > 65535 {
		return fmt.Errorf("metricsAddress: %q is no address and port: use the form 127.0.0.1:10351, or \"\" for none", c.MetricsAddress)
	}
	return nil
}

func (c *Config) checkPaths() error {
	for _, p := range []struct {
		key, value string
		optional   bool
	}{
		{"stateDir", c.StateDir, false}, {"lockDir", c.LockDir, false},
		{"ovsRunDir", c.OVSRunDir, false}, {"cniConfDir", c.CNIConfDir, true},
		{"logFile", c.LogFile, true},
	} {
		if p.value == "" && p.optional {
			continue
		}
		if !filepath.IsAbs(p.value) {
			return fmt.Errorf("%s: %q is no absolute path", p.key, p.value)
		}
	}
	return checkSocket(c.CNISocket)
}

func (c *Config) checkNumbers() error {
	switch {
	case c.PortReadiness != Sync && c.PortReadiness != Async:
		return fmt.Errorf("portReadiness: %q is unknown: use %s or %s", c.PortReadiness, Sync, Async)
	case c.PortReadiness == Sync && !syncPossible:
		return fmt.Errorf("portReadiness: sync is not possible on this system, where interfaces appear after ADD has returned: use %s", Async)
	case c.NotReadyAfter <= 0:
		return fmt.Errorf("notReadyAfter: %s: use more than 0s", c.NotReadyAfter)
	case c.RetryInterval <= 0:
		return fmt.Errorf("retryInterval: %s: use more than 0s", c.RetryInterval)
	case c.SyncPeriod <= 0:
		return fmt.Errorf("syncPeriod: %s: use more than 0s", c.SyncPeriod)
	case c.Verbosity < 0 || c.Verbosity > 10:
		return fmt.Errorf("verbosity: %d: use 0 to 10", c.Verbosity)
	}
	return nil
}

// lastAddr is the highest address of p.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
