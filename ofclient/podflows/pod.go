package podflows

import (
	"fmt"
	"net/netip"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

// pod is what the flows of one interface are made of.
type pod struct {
	port   uint32
	mac    [6]byte
	v4, v6 []netip.Addr
	vlan   uint16
}

// ifaceFlows builds the flows of an interface. It is the one place that does,
// and so the one place where a number that is none is stopped: OVS takes flows
// with in_port 0 or 0xffffffff without a word (fact 9).
func ifaceFlows(iface ifstore.Interface, round uint16) ([]ofp.FlowMod, error) {
	p, err := newPod(iface)
	if err != nil {
		return nil, fmt.Errorf("flows of interface %s (port %q): %w", nameOf(iface), iface.Name, err)
	}
	f := &flows{cookie: cookieFor(round, ifaceID(iface.Key))}
	f.podClassifier(p)
	if len(p.v4)+len(p.v6) == 0 {
		f.layer2Guard(p)
	}
	for _, a := range p.v4 {
		f.podIPv4(p, a)
	}
	if len(p.v6) > 0 {
		f.podIPv6(p)
	}
	f.add(TableSwitching, 200, ofp.Match{onVLAN(p.vlan), ofp.EthDst(p.mac)}, TableIngressPolicy, setPort(p.port))
	f.addFloodLink(p.port, p.vlan)
	return f.mods, nil
}

// nameOf names an interface in texts: its Pod, and its key, which is the identity.
func nameOf(iface ifstore.Interface) string {
	if pod := iface.Pod.String(); pod != "" {
		return pod + " (" + iface.Key.String() + ")"
	}
	return iface.Key.String()
}

func newPod(iface ifstore.Interface) (pod, error) {
	p := pod{port: iface.OFPort, mac: iface.MAC, vlan: iface.VLAN}
	if err := checkPort(iface.OFPort); err != nil {
		return pod{}, err
	}
	if err := checkMAC(iface.MAC); err != nil {
		return pod{}, err
	}
	if p.vlan > maxVLAN {
		return pod{}, fmt.Errorf("VLAN %d: %w: want %d to %d, or 0 for untagged", p.vlan, podnet.ErrBadRequest, minVLAN, maxVLAN)
	}
	seen := map[netip.Addr]bool{}
	for _, a := range iface.IPs() {
		if err := checkAddr(a); err != nil {
			return pod{}, err
		}
		switch a = a.WithZone(""); {
		case seen[a]:
		case a.Is4():
			p.v4 = append(p.v4, a)
		default:
			p.v6 = append(p.v6, a)
		}
		seen[a] = true
	}
	return p, nil
}

func checkPort(n uint32) error {
	if n >= firstPort && n <= lastPort {
		return nil
	}
	return fmt.Errorf("OpenFlow port %d (%#x): %w: OVS numbers ports %d to %d; wait until it has given one", int32(n), n, podnet.ErrNoNumber, firstPort, lastPort)
}

func checkMAC(m ifstore.MAC) error {
	if m.IsZero() || m[0]&1 != 0 {
		return fmt.Errorf("MAC address %s: %w: want the unicast address of the container's end", m, podnet.ErrBadRequest)
	}
	return nil
}

func checkAddr(a netip.Addr) error {
	if !a.IsValid() || a.Is4In6() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return fmt.Errorf("address %s: %w: want a unicast address of an interface", a, podnet.ErrBadRequest)
	}
	return nil
}

// podClassifier lets untagged frames in. A tagged frame, 802.1Q or 802.1ad,
// matches nothing: the access VLAN is podnet's to set (fact 32).
func (f *flows) podClassifier(p pod) {
	class := fromPod
	if len(p.v4)+len(p.v6) == 0 {
		class = fromL2
	}
	acts := []ofp.Action{setFact(class, fromMask)}
	if p.vlan != 0 {
		acts = append(acts, ofp.PushVLAN{EtherType: ofp.EtherType8021Q}, set(ofp.VLANVID(p.vlan)))
	}
	f.add(TableClassifier, 200, ofp.Match{ofp.InPort(p.port), ofp.VLANNone()}, TableScreen, acts...)
}

// me begins every guard match: this port, this MAC.
func (p pod) me(m ofp.Match, more ...ofp.Field) ofp.Match {
	return with(with(ofp.Match{ofp.InPort(p.port), ofp.EthSrc(p.mac)}, m...), more...)
}

func (f *flows) podIPv4(p pod, a netip.Addr) {
	own, nobody := host(a), host(netip.IPv4Unspecified())
	f.add(TableNeighbourGuard, 200, p.me(arpFrames, ofp.ARPSHA(p.mac), ofp.ARPSPA(own)), TableDispatch)
	f.add(TableNeighbourGuard, 200, p.me(arpFrames, ofp.ARPOp(arpRequest), ofp.ARPSHA(p.mac), ofp.ARPSPA(nobody), ofp.ARPTPA(own)), TableDispatch)
	f.add(TableSourceGuard, 200, p.me(ipv4Frames, ofp.IPv4Src(own)), TableDispatch)

	// ARP about itself is an announcement; from others a question for it.
	f.add(TableNeighbour, 235, with(arpFrames, ofp.InPort(p.port), ofp.ARPTPA(own)), TableFlood)
	f.add(TableNeighbour, 200, with(arpFrames, onVLAN(p.vlan), ofp.ARPOp(arpRequest), ofp.ARPTPA(own)), TableOutput, setPort(p.port))
	if p.vlan == 0 {
		f.add(TableRouting, 200, with(ipv4Frames, fact(factRouted), ofp.IPv4Dst(own)), TableRouted, set(ofp.EthDst(p.mac)), setPort(p.port))
	}
}

func (f *flows) podIPv6(p pod) {
	derived := derivedLinkLocal(p.mac)
	f.add(TableNeighbourGuard, 200, p.me(solicits, ofp.NDSLL(p.mac)), TableSourceGuard)
	hasDerived := false
	for _, a := range p.v6 {
		f.podOwnIPv6(p, a)
		hasDerived = hasDerived || a == derived
		if p.vlan == 0 && !a.IsLinkLocalUnicast() {
			f.add(TableRouting, 200, with(ipv6Frames, fact(factRouted), ofp.IPv6Dst(host(a))), TableRouted, set(ofp.EthDst(p.mac)), setPort(p.port))
		}
	}
	if !hasDerived {
		f.podOwnIPv6(p, derived)
	}
	// Link-local addresses that it draws itself; see linklocal.go.
	f.podMayClaim(p, 200, anyLinkLocal(ofp.FieldNDTarget))
	f.add(TableSourceGuard, 200, p.me(ipv6Frames, anyLinkLocal(ofp.FieldIPv6Src)), TableDispatch)
}

// podOwnIPv6 is for an address that is the Pod's alone.
func (f *flows) podOwnIPv6(p pod, a netip.Addr) {
	f.podMayClaim(p, 220, ofp.NDTarget(a))
	f.add(TableSourceGuard, 220, p.me(ipv6Frames, ofp.IPv6Src(host(a))), TableDispatch)
	f.add(TableNeighbour, 200, with(solicits, onVLAN(p.vlan), ofp.NDTarget(a)), TableOutput, setPort(p.port))
}

// podMayClaim lets the Pod ask whether a target is free and advertise it, with
// its own MAC or none in the option. The advertisement's source is checked next.
func (f *flows) podMayClaim(p pod, priority uint16, target ofp.Field) {
	f.add(TableNeighbourGuard, priority, p.me(solicits, ofp.IPv6Src(host(netip.IPv6Unspecified())), target, ofp.NDSLL([6]byte{})), TableDispatch)
	for _, mac := range [][6]byte{p.mac, {}} {
		f.add(TableNeighbourGuard, priority, p.me(adverts, target, ofp.NDTLL(mac)), TableSourceGuard)
	}
}

// layer2Guard is for an interface without addresses: its MAC is all that is known.
func (f *flows) layer2Guard(p pod) {
	f.add(TableNeighbourGuard, 200, p.me(arpFrames, ofp.ARPSHA(p.mac)), TableDispatch)
	derived := derivedLinkLocal(p.mac)
	for _, mac := range [][6]byte{p.mac, {}} {
		f.add(TableNeighbourGuard, 200, p.me(solicits, ofp.NDSLL(mac)), TableSourceGuard)
		f.add(TableNeighbourGuard, 200, p.me(adverts, ofp.NDTLL(mac)), TableSourceGuard)
		f.add(TableNeighbourGuard, 220, p.me(adverts, ofp.NDTarget(derived), ofp.NDTLL(mac)), TableSourceGuard)
	}
	f.add(TableNeighbourGuard, 220, p.me(solicits, ofp.IPv6Src(host(netip.IPv6Unspecified())), ofp.NDTarget(derived), ofp.NDSLL([6]byte{})), TableDispatch)
	f.add(TableSourceGuard, 220, p.me(ipv6Frames, ofp.IPv6Src(host(derived))), TableDispatch)
	f.add(TableSourceGuard, 200, p.me(nil), TableDispatch)
}
