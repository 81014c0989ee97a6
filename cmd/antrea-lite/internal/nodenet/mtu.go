package nodenet

import "fmt"

// Bytes that a tunnel puts around a Pod's packet, the inner Ethernet header among them.
const (
	innerEthernet = 14
	outerUDP      = 8
	outerIPv4     = 20
	outerIPv6     = 40
	geneveHeader  = 8 // RFC 8926, without options
	vxlanHeader   = 8 // RFC 7348
	maxIPPacket   = 65535
)

// Overhead returns by how much smaller a Pod's packets must be than those of the
// network between the nodes, for a tunnel of type geneve or vxlan ("": none)
// between IPv4 or IPv6 addresses.
func Overhead(tunnel string, outer6 bool) int {
	n := innerEthernet + outerUDP
	switch tunnel {
	case "":
		return 0
	case "vxlan":
		n += vxlanHeader
	default:
		n += geneveHeader
	}
	if outer6 {
		return n + outerIPv6
	}
	return n + outerIPv4
}

// PodMTU returns the MTU of Pods for an uplink's MTU. An error names both when
// nothing useful is left; pod6 tells that there are IPv6 Pods.
func PodMTU(uplink, overhead int, pod6 bool) (int, error) {
	mtu := min(uplink, maxIPPacket) - overhead
	low := 576
	if pod6 {
		low = 1280 // RFC 8200
	}
	if mtu < low {
		return 0, fmt.Errorf("the uplink's MTU %d leaves %d for Pods, %d are needed: raise it, or let nodes route to each other (traffic.mode noEncap)", uplink, mtu, low)
	}
	return mtu, nil
}
