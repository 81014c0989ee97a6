package agent

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/antrea-lite/podnet/backend/linux"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/podnet"
)

// osLinker is the platform's backend; podnet looks for more than podnet.Linker in it.
type osLinker = linux.Linker

func newLinker(conf *config.Config) (nodeLinker, error) {
	userspace := conf.Datapath == "netdev"
	linker, err := linux.NewLinker(linux.Config{HostPrefix: conf.HostPrefix, MTU: conf.MTU, DisableTXChecksum: userspace})
	l := nodeLinker{osLinker: linker}
	if userspace {
		l.settle = func(link podnet.Link) error { return quiet(link.Name) }
	}
	return l, err
}

// readiness waits for the numbers within ADD.
func (a *agent) readiness() (podnet.PortReadiness, error) {
	return linux.NewReadiness(linux.ReadinessConfig{
		Ports: a.ovs, Watches: []linux.NameWatch{a.of.WatchPorts(), a.ovs.WatchOFPorts()}, Describe: portTable{a.of}.describe,
	}), nil
}

// quiet takes the host's end of a cable out of the host's own conversation. On
// the kernel datapath Open vSwitch takes every frame before the host's stack
// sees it. On the userspace datapath it reads a copy, and the host answers the
// Pods' ARP for the gateway by itself, with the MAC of the cable's end, and takes
// in what Pods send without the pipeline having looked at it.
//
// With these settings the end neither answers ARP (arp_ignore 8) nor speaks IPv6,
// and drops IPv4 that comes in a broadcast frame or from an address whose way
// back is not this end, which is every Pod's. Nothing tells a Pod the end's MAC.
func quiet(name string) error {
	v4, v6 := "/proc/sys/net/ipv4/conf/"+name+"/", "/proc/sys/net/ipv6/conf/"+name+"/"
	for _, s := range [][2]string{
		{v4 + "arp_ignore", "8"}, {v4 + "rp_filter", "1"}, {v4 + "drop_unicast_in_l2_multicast", "1"}, {v6 + "disable_ipv6", "1"},
	} {
		err := os.WriteFile(s[0], []byte(s[1]), 0o644)
		if err != nil && !(strings.HasPrefix(s[0], v6) && errors.Is(err, os.ErrNotExist)) { // no IPv6 in this kernel
			return fmt.Errorf("keep the host's stack off %s: %w", name, err)
		}
	}
	return nil
}
