package linux

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// quietSettings take the host's end of a cable out of the host's own
// conversation. On the kernel datapath Open vSwitch takes every frame before the
// host's stack sees it. On the userspace datapath it reads a copy, and the host
// answers the Pods' ARP for the gateway by itself, with the MAC of the cable's
// end, and takes in what Pods send without the pipeline having looked at it.
//
// With these the end neither answers ARP (arp_ignore 8) nor speaks IPv6, and
// drops IPv4 that comes in a broadcast frame or from an address whose way back
// is not this end, which is every Pod's. Nothing tells a Pod the end's MAC.
func quietSettings(name string) [][2]string {
	v4, v6 := "/proc/sys/net/ipv4/conf/"+name+"/", confIPv6+name+"/"
	return [][2]string{
		{v4 + "arp_ignore", "8"}, {v4 + "rp_filter", "1"}, {v4 + "drop_unicast_in_l2_multicast", "1"}, {v6 + "disable_ipv6", "1"},
	}
}

func quiet(name string) error {
	for _, s := range quietSettings(name) {
		err := writeSysctl(s[0], s[1])
		if err != nil && !(errors.Is(err, unix.ENOENT) && strings.HasPrefix(s[0], confIPv6)) { // no IPv6 in this kernel
			return fmt.Errorf("keep the host's stack off %s: %w; /proc/sys must be writable: run privileged", name, err)
		}
	}
	return nil
}

// quietness adds what somebody has changed of quietSettings.
func (d *differences) quietness(name string) error {
	for _, s := range quietSettings(name) {
		got, err := os.ReadFile(s[0])
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6 in this kernel, or the interface is gone, which is told elsewhere
		}
		if err != nil {
			return err
		}
		if have := strings.TrimSpace(string(got)); have != s[1] {
			d.add("host end %s: %s is %s, want %s: the host's own stack would answer the container", name, s[0], have, s[1])
		}
	}
	return nil
}
