package cluster

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// Config says what a cluster is made of.
type Config struct {
	// Dir holds all that the cluster keeps. Up makes it, Down removes it. It has
	// to be on a file system that overlayfs accepts for writing.
	Dir string
	// Disks holds the nodes' disks: images, containers and what nodes write. Up
	// takes memory for them where there is plenty, and otherwise Dir.
	Disks string
	// Nodes is their number; 2 when 0.
	Nodes int
	// DualStack gives nodes, Pods and Services IPv6 addresses beside IPv4.
	DualStack bool
	// Parts are the programs and images that the nodes get.
	Parts Parts
	// Bound makes the cluster end with the process that called Up or Reboot,
	// however that ends.
	Bound bool `json:"-"`
}

// Parts are files that package build makes.
type Parts struct {
	Kubeall    string   // directory with kubeall and a link for each component
	Containerd string   // directory with containerd, its shim and ctr
	Plugins    string   // directory with the CNI plugins of every distribution: loopback, portmap, ...
	Images     []string // image archives that every node gets
}

// Addresses of the cluster; see the package comment.
const (
	ClusterDNS  = "10.96.0.10"
	apiPort     = 6443
	serviceCIDR = "10.96.0.0/16"
	podCIDR     = "10.244.0.0/16"
	serviceV6   = "fd00:96::/112"
	podV6       = "fd00:244::/56"
	controlName = "control"
)

// ControlPlane is the control plane's address on the fabric.
func ControlPlane() netip.Addr { return netip.AddrFrom4([4]byte{172, 31, 0, 1}) }

// PodCIDRs are the ranges of all nodes' Pods.
func (c Config) PodCIDRs() []string { return c.families(podCIDR, podV6) }

// ServiceCIDRs are the ranges of ClusterIPs.
func (c Config) ServiceCIDRs() []string { return c.families(serviceCIDR, serviceV6) }

func (c Config) families(v4, v6 string) []string {
	if c.DualStack {
		return []string{v4, v6}
	}
	return []string{v4}
}

// fabric returns the addresses of host number n on the fabric: IPv4 first.
func (c Config) fabric(n byte) []netip.Prefix {
	v4 := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, 0, n}), 24)
	if !c.DualStack {
		return []netip.Prefix{v4}
	}
	v6 := netip.MustParseAddr("fd00:31::").As16()
	v6[15] = n
	return []netip.Prefix{v4, netip.PrefixFrom(netip.AddrFrom16(v6), 64)}
}

// check fills in what may be left out.
func (c *Config) check() error {
	if c.Nodes == 0 {
		c.Nodes = 2
	}
	if c.Nodes < 1 || c.Nodes > 9 {
		return fmt.Errorf("%d nodes: 1 to 9 are possible", c.Nodes)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	c.Dir = dir
	// These are overlaid in the nodes, and an overlay must not contain its own upper half.
	i := slices.IndexFunc(overlaid(), func(top string) bool { return strings.HasPrefix(dir+"/", top+"/") })
	if i >= 0 {
		return fmt.Errorf("the cluster's directory %s is below %s, which nodes see through an overlay: choose another", dir, overlaid()[i])
	}
	return nil
}

// overlaid are the directories of the machine that a node sees, and may write
// to without the machine seeing it.
func overlaid() []string { return []string{"/etc", "/opt", "/usr/lib", "/var"} }
