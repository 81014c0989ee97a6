package linux

import (
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"golang.org/x/sys/unix"
)

// create makes the veth pair and returns the host's end as read back. A
// leftover of an earlier Link of the same interface (the process was killed
// before anyone recorded it) is removed first.
func create(host *rtnl, p plan, ns *netNS) (linkInfo, error) {
	link, err := tryCreate(host, p, ns)
	var taken *takenError
	if errors.As(err, &taken) && owns(taken.by, p.host, p.key) {
		if err := remove(host, taken.by.index); err != nil {
			return linkInfo{}, err
		}
		link, err = tryCreate(host, p, ns)
	}
	return link, err
}

// takenError: the name of the host's end is taken.
type takenError struct {
	want string
	key  ifstore.Key
	by   linkInfo
}

func (e *takenError) Unwrap() error { return podnet.ErrPortExists }

func (e *takenError) Error() string {
	who := fmt.Sprintf("%s %q (index %d, MAC %v, alias %q)", e.by.kindOr("interface"), e.by.name, e.by.index, e.by.mac, e.by.alias)
	if e.by.name != e.want {
		who += ", which has it as an alternative name"
	}
	return fmt.Sprintf("%v: host interface name %q, wanted for %v, is taken by %s; remove or rename that, or give this node another host interface prefix",
		podnet.ErrPortExists, e.want, e.key, who)
}

func (l linkInfo) kindOr(other string) string {
	if l.kind != "" {
		return l.kind
	}
	return other
}

// tryCreate sends the request once. Look-up by name in the same system call
// tells what was made, or who was in the way.
func tryCreate(host *rtnl, p plan, ns *netNS) (linkInfo, error) {
	replies, err := host.do(newVeth(p, ns.fd), getLinkByName(p.host))
	if err != nil {
		return linkInfo{}, fmt.Errorf("create veth %s: %w", p.host, err)
	}
	made, looked := replies[0].err, replies[1]
	var link linkInfo
	if looked.err == nil && len(looked.data) == 1 {
		if link, err = parseLink(looked.data[0]); err != nil {
			looked.err = err
		}
	}
	switch {
	case errors.Is(made, unix.EEXIST) && looked.err == nil:
		return linkInfo{}, &takenError{want: p.host, key: p.key, by: link}
	case errors.Is(made, unix.EEXIST):
		return linkInfo{}, describeTaken(p, ns)
	case errors.Is(made, unix.EOPNOTSUPP):
		return linkInfo{}, fmt.Errorf("create veth %s: %w; the kernel has no veth: load the module (modprobe veth)", p.host, made)
	case errors.Is(made, unix.EPERM):
		return linkInfo{}, fmt.Errorf("create veth %s: %w; run as root or with CAP_NET_ADMIN in both network namespaces", p.host, made)
	case made != nil:
		return linkInfo{}, fmt.Errorf("create veth %s, peer %s in network namespace %q: %w", p.host, p.key.IfName, p.netNS, made)
	case looked.err != nil || link.kind != "veth" || link.peer == 0:
		// Someone renamed or removed the new interface at once; its other end still has its name.
		err := fmt.Errorf("veth %s was made and is not there (%v); another program on this node changes new interfaces", p.host, looked.err)
		return linkInfo{}, differences{err, ns.run(func() error { return removeByName(p.key.IfName, p.mac) })}.err()
	}
	return link, nil
}

// describeTaken explains EEXIST when the host's name is free.
func describeTaken(p plan, ns *netNS) error {
	link, err := lookUpIn(ns, p.key.IfName)
	if err != nil {
		return fmt.Errorf("create veth %s, peer %s in network namespace %q: %w, and what is in the way cannot be seen: %w",
			p.host, p.key.IfName, p.netNS, unix.EEXIST, err)
	}
	return fmt.Errorf("%w: network namespace %q has an interface %q already (%s %q, index %d, MAC %v); remove it, or ask for another interface name",
		podnet.ErrBadRequest, p.netNS, p.key.IfName, link.kindOr("interface"), link.name, link.index, link.mac)
}

// lookUpIn finds a link of another namespace by its name.
func lookUpIn(ns *netNS, name string) (link linkInfo, err error) {
	err = ns.run(func() error {
		c, err := dialRTNL()
		if err != nil {
			return err
		}
		defer c.close()
		link, err = lookUp(c, name)
		return err
	})
	return link, err
}

// errNoLink: no link has that name, neither as its own nor as an alternative one.
var errNoLink = errors.New("no such interface")

// lookUp finds a link by name. The kernel also matches alternative names: a
// caller that wants the link of that very name compares linkInfo.name.
func lookUp(c *rtnl, name string) (linkInfo, error) {
	return oneLink(c, name, func() ([]reply, error) { return c.do(getLinkByName(name)) })
}

func oneLink(c *rtnl, what string, ask func() ([]reply, error)) (linkInfo, error) {
	replies, err := ask()
	if err != nil {
		return linkInfo{}, fmt.Errorf("look up interface %s: %w", what, err)
	}
	last := replies[len(replies)-1]
	switch {
	case errors.Is(last.err, unix.ENODEV):
		return linkInfo{}, fmt.Errorf("interface %s: %w", what, errNoLink)
	case last.err != nil:
		return linkInfo{}, fmt.Errorf("look up interface %s: %w", what, last.err)
	case len(last.data) != 1:
		return linkInfo{}, fmt.Errorf("look up interface %s: the kernel answered with %d links", what, len(last.data))
	}
	return parseLink(last.data[0])
}

// removeByName deletes the link of that name and MAC in the thread's
// namespace; the MAC proves that it is ours.
func removeByName(name string, mac ifstore.MAC) error {
	c, err := dialRTNL()
	if err != nil {
		return err
	}
	defer c.close()
	link, err := lookUp(c, name)
	if errors.Is(err, errNoLink) || err == nil && link.mac != mac {
		return nil
	}
	if err != nil {
		return err
	}
	return remove(c, link.index)
}
