package linux

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// datapathMaster is the link of which the kernel datapath makes its ports a part.
const datapathMaster = "ovs-system"

// linkDevice plugs in a host interface that others make (Request.HostDevice).
// Nothing is made here. When the device is there it is checked and set up; else
// that happens when it appears, if the configuration lets it come late.
// Addresses and routes are for whoever has the other end: they are in the
// result of the Add.
func (l *Linker) linkDevice(ctx context.Context, req podnet.Request) (podnet.Link, error) {
	if err := checkName(req.HostDevice); err != nil {
		return podnet.Link{}, fmt.Errorf("%w: host device: %w", podnet.ErrBadRequest, err)
	}
	p, err := newPlan(l.cfg, req)
	if err != nil {
		return podnet.Link{}, err
	}
	ns, err := l.openContainer(p.netNS)
	if err != nil {
		return podnet.Link{}, err
	}
	ns.close()
	if err := ctx.Err(); err != nil {
		return podnet.Link{}, context.Cause(ctx)
	}
	_, err = l.setUpDevice(req.HostDevice, p.mtu)
	switch {
	case errors.Is(err, podnet.ErrNoDevice) && l.cfg.LateDevices:
	case errors.Is(err, podnet.ErrNoDevice):
		return podnet.Link{}, fmt.Errorf("%w; this agent waits for ports in ADD: make the device before the container, or let the agent run with portReadiness: async", err)
	case err != nil:
		return podnet.Link{}, err
	}
	return podnet.Link{Name: req.HostDevice, MAC: p.mac, MTU: p.mtu, Extra: map[string]string{extraDevice: hostDevice}}, nil
}

// setUpDevice checks a device of others and makes it fit to be a port: MTU, up,
// no address of its own. It returns the device's index. Not there:
// podnet.ErrNoDevice. One that the host itself uses is refused: podnet.ErrBadRequest.
func (l *Linker) setUpDevice(name string, mtu int) (index int, err error) {
	c, err := dialRTNL()
	if err != nil {
		return 0, err
	}
	defer c.close()
	link, err := lookUp(c, name)
	switch {
	case errors.Is(err, errNoLink), err == nil && link.name != name:
		return 0, fmt.Errorf("host interface %s has not appeared yet: %w", name, podnet.ErrNoDevice)
	case err != nil:
		return 0, err
	}
	if err := mayTake(c, link); err != nil {
		return 0, err
	}
	if l.cfg.QuietHost {
		if err := quiet(name); err != nil {
			return 0, err
		}
	}
	var steps []step
	if link.mtu != mtu {
		steps = append(steps, step{what: fmt.Sprintf("set the MTU of %s to %d", name, mtu), req: setMTU(link.index, mtu)})
	}
	steps = append(steps,
		step{what: "keep IPv6 link-local addresses off " + name, req: noLinkLocal(link.index), ok: unix.EAFNOSUPPORT},
		step{what: "bring up " + name, req: setUp(link.index)})
	if _, err := perform(c, steps...); err != nil {
		return 0, fmt.Errorf("host device %s: %w", name, err)
	}
	return link.index, nil
}

// mayTake refuses what belongs to somebody else: a port of another bridge or
// bond, and an interface that carries addresses of the host, whose network would
// be gone with it.
func mayTake(c *rtnl, link linkInfo) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: host device %s %s", podnet.ErrBadRequest, link.name, fmt.Sprintf(format, args...))
	}
	switch {
	case link.index == loopback:
		return refuse("is the loopback interface")
	case link.kind == "openvswitch":
		return refuse("is Open vSwitch's own")
	}
	if link.master != 0 {
		replies, err := c.do(getLink(link.master))
		if err != nil {
			return err
		}
		master, err := oneLink(fmt.Sprint("index ", link.master), replies[0])
		if err != nil {
			return err
		}
		if master.name != datapathMaster {
			return refuse("is a part of %s %s; take it out first", master.kindOr("interface"), master.name)
		}
	}
	var owned string
	err := listing(context.Background(), func(h *netlink.Handle) error {
		owned = ""
		list, err := h.AddrList(indexed(link.index), netlink.FAMILY_ALL)
		for _, a := range list {
			if a.IP.IsGlobalUnicast() {
				owned = a.IPNet.String()
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list addresses of %s: %w", link.name, err)
	}
	if owned != "" {
		return refuse("has address %s: it is the host's own; a port of the bridge cannot have one", owned)
	}
	return nil
}

// checkDevice compares a device of others with the record.
func (l *Linker) checkDevice(iface ifstore.Interface) error {
	c, err := dialRTNL()
	if err != nil {
		return err
	}
	defer c.close()
	link, err := lookUp(c, iface.Name)
	if err != nil {
		return fmt.Errorf("host device: %w", err)
	}
	var d differences
	if link.mtu != iface.MTU {
		d.add("host device %s: MTU is %d, want %d", iface.Name, link.mtu, iface.MTU)
	}
	if !link.up {
		d.add("host device %s: is down", iface.Name)
	}
	if l.cfg.QuietHost {
		if err := d.quietness(iface.Name); err != nil {
			return err
		}
	}
	ns, err := openNetNS(iface.NetNS)
	if err != nil {
		return append(d, err).err()
	}
	ns.close()
	return d.err()
}

// ListDevices names every network interface of the thread's namespace, from a
// list that is whole: one that changed under the reader is read again.
func ListDevices(ctx context.Context) ([]string, error) {
	var names []string
	err := listing(ctx, func(h *netlink.Handle) error {
		links, err := h.LinkList()
		names = make([]string, len(links))
		for i, l := range links {
			names[i] = l.Attrs().Name
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	return names, nil
}
