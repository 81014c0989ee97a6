package linux

import (
	"net/netip"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The requests of this package. Each is one message; rtnl.do sends several at once.

// request starts a route netlink request about the link of that index (0: the
// kernel finds it by an attribute).
func request(kind, flags, index int) (*nl.NetlinkRequest, *nl.IfInfomsg) {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req := nl.NewNetlinkRequest(kind, flags)
	req.AddData(msg)
	return req, msg
}

// newVeth makes both ends: the host's in the namespace of the socket, the
// container's straight inside peerNS under its final name.
func newVeth(p plan, peerNS int) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, 0)
	add := func(kind int, data []byte) { req.AddData(nl.NewRtAttr(kind, data)) }
	endAttrs(add, p.host, p.hostMAC, p.mtu)

	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("veth"))
	peer := info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddRtAttr(nl.VETH_INFO_PEER, nil)
	nl.NewIfInfomsgChild(peer, unix.AF_UNSPEC)
	endAttrs(func(kind int, data []byte) { peer.AddRtAttr(kind, data) }, p.key.IfName, p.mac, p.mtu)
	peer.AddRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(peerNS)))
	req.AddData(info)
	return req
}

func endAttrs(add func(int, []byte), name string, mac ifstore.MAC, mtu int) {
	add(unix.IFLA_IFNAME, nl.ZeroTerminated(name))
	// A MAC given here counts as set by the user, so udev's MACAddressPolicy leaves it alone.
	add(unix.IFLA_ADDRESS, mac[:])
	add(unix.IFLA_MTU, nl.Uint32Attr(uint32(mtu)))
	// Since 5.15 the kernel's default is one queue per possible CPU, each with
	// its sysfs directory: milliseconds on a large machine, and of no use to a
	// veth without XDP.
	add(unix.IFLA_NUM_TX_QUEUES, nl.Uint32Attr(1))
	add(unix.IFLA_NUM_RX_QUEUES, nl.Uint32Attr(1))
}

func getLinkByName(name string) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_GETLINK, 0, 0)
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	req.AddData(skipStats())
	return req
}

func getLink(index int) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_GETLINK, 0, index)
	req.AddData(skipStats())
	return req
}

// skipStats (RTEXT_FILTER_SKIP_STATS) keeps half of a link's answer away.
func skipStats() *nl.RtAttr { return nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(1<<3)) }

func setUp(index int) *nl.NetlinkRequest {
	req, msg := request(unix.RTM_NEWLINK, 0, index)
	msg.Change, msg.Flags = unix.IFF_UP, unix.IFF_UP
	return req
}

func setMTU(index, mtu int) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_NEWLINK, 0, index)
	req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(mtu))))
	return req
}

func setMAC(index int, mac ifstore.MAC) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_NEWLINK, 0, index)
	req.AddData(nl.NewRtAttr(unix.IFLA_ADDRESS, mac[:]))
	return req
}

func setAlias(index int, alias string) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_NEWLINK, 0, index)
	req.AddData(nl.NewRtAttr(unix.IFLA_IFALIAS, []byte(alias)))
	return req
}

// noLinkLocal stops the kernel from making an IPv6 link-local address: the
// host's end is a port of the bridge and no place to be spoken to.
func noLinkLocal(index int) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_NEWLINK, 0, index)
	spec := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	inet6 := spec.AddRtAttr(unix.AF_INET6, nil)
	inet6.AddRtAttr(unix.IFLA_INET6_ADDR_GEN_MODE, nl.Uint8Attr(nl.IN6_ADDR_GEN_MODE_NONE))
	req.AddData(spec)
	return req
}

func deleteLink(index int) *nl.NetlinkRequest {
	req, _ := request(unix.RTM_DELLINK, 0, index)
	return req
}

func newAddr(index int, a netip.Prefix) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	msg := nl.NewIfAddrmsg(family(a.Addr()))
	msg.Index, msg.Prefixlen = uint32(index), uint8(a.Bits())
	if a.Addr().Is6() {
		// The manager of the addresses knows that this one is free; waiting for
		// duplicate address detection would keep it unusable for a second.
		msg.Flags = unix.IFA_F_NODAD
	}
	req.AddData(msg)
	ip := a.Addr().AsSlice()
	req.AddData(nl.NewRtAttr(unix.IFA_LOCAL, ip))
	req.AddData(nl.NewRtAttr(unix.IFA_ADDRESS, ip))
	if a.Addr().Is4() && a.Bits() < 31 {
		req.AddData(nl.NewRtAttr(unix.IFA_BROADCAST, lastAddr(a).AsSlice()))
	}
	return req
}

// lastAddr is the broadcast address of an IPv4 subnet.
func lastAddr(a netip.Prefix) netip.Addr {
	b := a.Masked().Addr().As4()
	for i := a.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

func newRoute(index int, r route) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	msg := &nl.RtMsg{RtMsg: unix.RtMsg{
		Family: uint8(family(r.dst.Addr())), Dst_len: uint8(r.dst.Bits()),
		Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_STATIC, Type: unix.RTN_UNICAST,
		Scope: unix.RT_SCOPE_UNIVERSE,
	}}
	if !r.gw.IsValid() {
		msg.Scope = unix.RT_SCOPE_LINK
	}
	req.AddData(msg)
	if r.dst.Bits() > 0 {
		req.AddData(nl.NewRtAttr(unix.RTA_DST, r.dst.Addr().AsSlice()))
	}
	req.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(index))))
	if r.gw.IsValid() {
		req.AddData(nl.NewRtAttr(unix.RTA_GATEWAY, r.gw.AsSlice()))
	}
	if r.mtu > 0 {
		metrics := nl.NewRtAttr(unix.RTA_METRICS, nil)
		metrics.AddRtAttr(unix.RTAX_MTU, nl.Uint32Attr(uint32(r.mtu)))
		req.AddData(metrics)
	}
	return req
}

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
