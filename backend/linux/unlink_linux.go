package linux

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// Unlink removes the veth pair, from the host's side alone: it needs neither
// the container's namespace nor its path. A pair that is gone counts as
// removed, and so does one whose name a stranger has by now; the stranger is
// left alone.
//
// The kernel needs about 20 ms for a link, most of it waiting for its readers
// outside of any lock. Calls that come together therefore go side by side, each
// with its own socket: 16 of them cost 2.3 ms each, as much as one request for
// a link group holding them all, which has to prove first that no stranger is
// in the group, and cannot while other links come and go.
func (l *Linker) Unlink(ctx context.Context, iface ifstore.Interface) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if isDevice(iface) {
		return nil // whoever made it deletes it
	}
	c, err := dialRTNL()
	if err != nil {
		return err
	}
	defer c.close()
	link, err := lookUp(c, iface.Name)
	if errors.Is(err, errNoLink) {
		l.forget(iface.Key)
		return nil
	}
	if err != nil {
		return err
	}
	if !owns(link, iface.Name, iface.Key) {
		klog.FromContext(ctx).Info("Left an interface alone: it has the name of a removed one and is not ours",
			"interface", iface.Name, "wanted", iface.Key.String(), "kind", link.kind, "alias", link.alias, "mac", link.mac.String())
		l.forget(iface.Key)
		return nil
	}
	if err := remove(c, link.index); err != nil {
		return fmt.Errorf("remove interface %s of %v: %w", iface.Name, iface.Key, err)
	}
	l.forget(iface.Key)
	return nil
}

func (l *Linker) forget(key ifstore.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.made, key)
}

// UnlinkOrphan removes the veth pair of a key that is in no record, whose host
// name derives from it. It implements podnet.OrphanUnlinker. Nothing there: nil.
func (l *Linker) UnlinkOrphan(ctx context.Context, key ifstore.Key) error {
	return l.Unlink(ctx, ifstore.Interface{Key: key, Name: hostName(l.cfg.HostPrefix, key)})
}

// owns reports whether link is the host's end that Link made for key: a veth
// of that very name which carries our alias or the MAC address that only we
// derive. The alias comes a moment after creation, and administrators may change it.
func owns(link linkInfo, name string, key ifstore.Key) bool {
	if link.kind != "veth" || link.name != name {
		return false
	}
	return link.alias == alias(key) || link.mac == hostMAC(key)
}

// remove deletes one link; gone already is as good.
func remove(c *rtnl, index int) error {
	replies, err := c.do(deleteLink(index))
	if err == nil {
		err = replies[0].err
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete link %d: %w", index, err)
	}
	return nil
}
