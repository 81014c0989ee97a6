package linux

import (
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/ethtool"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// loopback is the index of lo in every network namespace.
const loopback = 1

// step is one request of a batch and what it does, in words.
type step struct {
	what string
	req  *nl.NetlinkRequest
	ok   error // an answer that is as good as success
}

// perform sends all steps at once and returns the first error, or the reply to the last step.
func perform(c *rtnl, steps ...step) (reply, error) {
	reqs := make([]*nl.NetlinkRequest, len(steps))
	for i, s := range steps {
		reqs[i] = s.req
	}
	replies, err := c.do(reqs...)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", steps[0].what, err)
	}
	for i, r := range replies {
		if r.err != nil && (steps[i].ok == nil || !errors.Is(r.err, steps[i].ok)) {
			return reply{}, fmt.Errorf("%s: %w", steps[i].what, r.err)
		}
	}
	return replies[len(replies)-1], nil
}

// setUpHostEnd marks the host's end as ours and brings it up. It comes before
// the container's end: with no carrier yet, no IPv6 link-local address can
// appear before the mode that forbids it is set.
func setUpHostEnd(c *rtnl, index int, p plan) error {
	last, err := perform(c,
		step{what: "set the alias of " + p.host, req: setAlias(index, p.alias)},
		step{what: "keep IPv6 link-local addresses off " + p.host, req: noLinkLocal(index), ok: unix.EAFNOSUPPORT},
		step{what: "bring up " + p.host, req: setUp(index)},
		step{what: "read back " + p.host, req: getLink(index)})
	if err != nil {
		return err
	}
	return keepMAC(c, p.host, last, p.hostMAC)
}

// setUpContainerEnd configures the container's end; it runs inside the namespace.
func setUpContainerEnd(index int, p plan, noTXChecksum bool) error {
	c, err := dialRTNL()
	if err != nil {
		return err
	}
	defer c.close()
	if err := setSysctls(p.key.IfName, p.ipv6); err != nil {
		return in(p, err)
	}
	if noTXChecksum {
		if err := ethtool.Set(p.key.IfName, ethtool.TXChecksum, false); err != nil {
			return in(p, err)
		}
	}
	steps := []step{
		{what: "bring up lo", req: setUp(loopback)},
		{what: "bring up " + p.key.IfName, req: setUp(index)},
	}
	for _, a := range p.addrs {
		steps = append(steps, step{what: "add address " + a.String(), req: newAddr(index, a)})
	}
	for _, r := range p.routes {
		s := step{what: "add route " + r.String(), req: newRoute(index, r)}
		if r.implied {
			s.ok = unix.EEXIST
		}
		steps = append(steps, s)
	}
	steps = append(steps, step{what: "read back " + p.key.IfName, req: getLink(index)})
	last, err := perform(c, steps...)
	if err != nil {
		return in(p, err)
	}
	return in(p, keepMAC(c, p.key.IfName, last, p.mac))
}

// in says in which container err happened.
func in(p plan, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("interface %s in network namespace %q: %w", p.key.IfName, p.netNS, err)
}

// keepMAC compares the MAC address that was read back with the one that flows
// will be made for, and puts it right when something (udev, a policy daemon)
// has changed it meanwhile.
func keepMAC(c *rtnl, name string, got reply, want ifstore.MAC) error {
	link, err := oneLink(name, got)
	if err != nil || link.mac == want {
		return err
	}
	changed := link.mac
	replies, err := c.do(setMAC(link.index, want), getLink(link.index))
	if err != nil {
		return fmt.Errorf("put the MAC address of %s back: %w", name, err)
	}
	if link, err = oneLink(name, replies[1]); err != nil {
		return err
	}
	if link.mac != want {
		return fmt.Errorf("MAC address of %s was changed to %v and stays %v instead of %v; exclude the interface from the program that does so (udev MACAddressPolicy=none)",
			name, changed, link.mac, want)
	}
	return nil
}
