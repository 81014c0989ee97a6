package linux

import (
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"golang.org/x/sys/unix"
)

// create makes the veth pair and returns the host's end as read back. A
// leftover of an earlier process (it was killed before it recorded the pair,
// or nobody would ask for it again) is removed first. What this process made is
// no leftover.
func (l *Linker) create(host *rtnl, p plan, ns *netNS) (linkInfo, error) {
	link, err := tryCreate(host, p, ns)
	var taken *takenError
	if !errors.As(err, &taken) || !owns(taken.by, p.host, p.key) {
		return link, err
	}
	l.mu.Lock()
	_, living := l.made[p.key]
	l.mu.Unlock()
	if living {
		return linkInfo{}, fmt.Errorf("%w: interface %v is linked already, its host end is %s; DEL it before it is added again", podnet.ErrPortExists, p.key, p.host)
	}
	if err := remove(host, taken.by.index); err != nil {
		return linkInfo{}, err
	}
	return tryCreate(host, p, ns)
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
	made := replies[0].err
	link, err := oneLink(p.host, replies[1])
	switch {
	case errors.Is(made, unix.EEXIST) && err == nil:
		return linkInfo{}, &takenError{want: p.host, key: p.key, by: link}
	case errors.Is(made, unix.EEXIST):
		return linkInfo{}, describeTaken(p, ns)
	case errors.Is(made, unix.EOPNOTSUPP):
		return linkInfo{}, fmt.Errorf("create veth %s: %w; the kernel has no veth: load the module (modprobe veth)", p.host, made)
	case errors.Is(made, unix.EPERM):
		return linkInfo{}, fmt.Errorf("create veth %s: %w; run as root or with CAP_NET_ADMIN in both network namespaces", p.host, made)
	case made != nil:
		return linkInfo{}, fmt.Errorf("create veth %s, peer %s in network namespace %q: %w", p.host, p.key.IfName, p.netNS, made)
	case err == nil && (link.kind != "veth" || link.peer == 0):
		err = fmt.Errorf("%s %q has its name", link.kindOr("interface"), link.name)
	}
	if err != nil {
		// Someone renamed or removed the new interface at once; its other end still has its name.
		err = fmt.Errorf("veth %s was made and is not there (%w); another program on this node changes new interfaces", p.host, err)
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
	replies, err := c.do(getLinkByName(name))
	if err != nil {
		return linkInfo{}, fmt.Errorf("look up interface %s: %w", name, err)
	}
	return oneLink(name, replies[0])
}

// oneLink reads the answer to a look-up.
func oneLink(name string, r reply) (linkInfo, error) {
	switch {
	case errors.Is(r.err, unix.ENODEV):
		return linkInfo{}, fmt.Errorf("interface %s: %w", name, errNoLink)
	case r.err != nil:
		return linkInfo{}, fmt.Errorf("look up interface %s: %w", name, r.err)
	case len(r.data) != 1:
		return linkInfo{}, fmt.Errorf("look up interface %s: the kernel answered with %d links", name, len(r.data))
	}
	return parseLink(r.data[0])
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
