package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// MakeDevice makes the Pod's cable as somebody else would: a veth pair between
// the host's end, which has the name of the Pod's port, and the Pod's interface,
// with the MAC address, addresses and routes of the ADD's result.
func (p *Pod) MakeDevice() (err error) {
	mac, err := p.MAC()
	if err != nil {
		return err
	}
	ns, err := netns.GetFromPath(p.NetNS)
	if err != nil {
		return err
	}
	defer ns.Close()
	inside, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer inside.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = p.HostInterface()
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: p.IfName, PeerNamespace: netlink.NsFd(ns), PeerHardwareAddr: mac[:]}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make %s: %w", attrs.Name, err)
	}
	if err := p.configure(inside); err != nil {
		return errors.Join(err, netlink.LinkDel(veth))
	}
	return netlink.LinkSetUp(veth)
}

// configure brings up the Pod's interface and gives it what ADD promised.
func (p *Pod) configure(inside *netlink.Handle) error {
	link, err := inside.LinkByName(p.IfName)
	if err != nil {
		return err
	}
	if err := inside.LinkSetUp(link); err != nil {
		return err
	}
	for _, ip := range p.Result.IPs {
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip.Address.IP, Mask: ip.Address.Mask}, Flags: unix.IFA_F_NODAD}
		if err := inside.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("address %s: %w", ip.Address.String(), err)
		}
		if ip.Gateway == nil {
			continue
		}
		if err := inside.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: everything(ip.Gateway), Gw: ip.Gateway}); err != nil {
			return fmt.Errorf("route by %s: %w", ip.Gateway, err)
		}
	}
	return nil
}

func everything(gateway net.IP) *net.IPNet {
	prefix := netip.MustParsePrefix("::/0")
	if gateway.To4() != nil {
		prefix = netip.MustParsePrefix("0.0.0.0/0")
	}
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(0, prefix.Addr().BitLen())}
}

// DeleteDevice removes the host's end of the Pod's cable, and with it the other one.
func (p *Pod) DeleteDevice() error {
	link, err := netlink.LinkByName(p.HostInterface())
	if err != nil {
		return err
	}
	if err := netlink.LinkDel(link); !errors.Is(err, unix.ENODEV) { // it went with the Pod's namespace just now
		return err
	}
	return nil
}

// MakeTap makes a tap and brings it up: a device whose far end is this process.
// What is sent by the Wire comes in at the device, and what goes out there can
// be waited for. The device goes with Close.
func MakeTap(name string) (*Wire, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, errors.Join(fmt.Errorf("make tap %s: %w", name, err), unix.Close(fd))
	}
	tap := &Wire{f: os.NewFile(uintptr(fd), name)}
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return nil, errors.Join(err, tap.Close())
	}
	return tap, nil
}
