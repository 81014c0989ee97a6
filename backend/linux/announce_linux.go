package linux

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/antrea-lite/podnet/ifstore"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// announcements is how often each is sent: RFC 5227 (ANNOUNCE_NUM) and RFC 4861
// repeat because a frame may be lost. Both space the copies by a second or
// more; an ADD does not wait for that.
const announcements = 2

// Announce tells the neighbours which MAC address the interface's addresses
// have: ARP announcements for IPv4, unsolicited neighbour advertisements for
// IPv6. The flows must be in, or the switch drops them. The frames leave
// through a socket of the container's namespace, so none can reach another network.
func (l *Linker) Announce(ctx context.Context, iface ifstore.Interface) error {
	if isDevice(iface) {
		return nil // the other end is somebody else's, who announces what he has
	}
	frames, err := announceFrames(iface)
	if err != nil || len(frames) == 0 {
		return err
	}
	ns, err := openNetNS(iface.NetNS)
	if err != nil {
		return fmt.Errorf("announce %v: %w", iface.Key, err)
	}
	defer ns.close()
	if ns.id == l.host {
		return fmt.Errorf("announce %v: %q is the host's own network namespace", iface.Key, iface.NetNS)
	}
	restored := false
	err = ns.run(func() (err error) {
		restored, err = announce(iface, frames)
		return err
	})
	if restored {
		klog.FromContext(ctx).Info("Another program had changed the MAC address of a new interface; put it back",
			"interface", iface.IfName, "netns", iface.NetNS, "mac", iface.MAC.String())
	}
	if err != nil {
		return fmt.Errorf("announce %v from network namespace %q: %w", iface.Key, iface.NetNS, err)
	}
	return nil
}

// announce runs inside the namespace. A MAC address that was changed since Link
// is put right first (restored): the flows let only the recorded one through.
func announce(iface ifstore.Interface, frames [][]byte) (restored bool, err error) {
	c, err := dialRTNL()
	if err != nil {
		return false, err
	}
	defer c.close()
	link, err := lookUp(c, iface.IfName)
	if err != nil {
		return false, err
	}
	if link.mac != iface.MAC {
		if _, err := perform(c, step{what: "put the MAC address back", req: setMAC(link.index, iface.MAC)}); err != nil {
			return false, err
		}
		restored = true
	}
	// Protocol 0: this socket sends and never receives.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return restored, fmt.Errorf("open a packet socket: %w", err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Ifindex: link.index, Halen: 6}
	for range announcements {
		for _, f := range frames {
			copy(to.Addr[:], f[:6])
			if err := unix.Sendto(fd, f, 0, to); err != nil {
				return restored, fmt.Errorf("send: %w", err)
			}
		}
	}
	return restored, nil
}

// announceFrames is one Ethernet frame for each address of iface.
func announceFrames(iface ifstore.Interface) ([][]byte, error) {
	var frames [][]byte
	var errs []error
	for _, a := range iface.IPs() {
		frame, err := announceFrame(iface.MAC, a)
		if err != nil {
			errs = append(errs, fmt.Errorf("announcement of %v: %w", a, err))
			continue
		}
		frames = append(frames, frame)
	}
	return frames, errors.Join(errs...)
}

func announceFrame(mac ifstore.MAC, addr netip.Addr) ([]byte, error) {
	if addr.Is4() {
		return arpAnnouncement(mac, addr)
	}
	return unsolicitedNA(mac, addr)
}
