package linux

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/join"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// maxGroup bounds how many links one request deletes: the kernel holds the
// lock of all network configuration meanwhile.
const maxGroup = 256

// Unlink removes the veth pair, from the host's side alone: it needs neither
// the container's namespace nor its path. A pair that is gone counts as
// removed, and so does one whose name a stranger has by now; the stranger is
// left alone. Calls that wait at the same moment share one request. When ctx
// ends, Unlink returns and the removal goes on.
func (l *Linker) Unlink(ctx context.Context, iface ifstore.Interface) error {
	c, err := dialRTNL()
	if err != nil {
		return err
	}
	link, err := lookUp(c, iface.Name)
	c.close()
	if errors.Is(err, errNoLink) {
		return nil
	}
	if err != nil {
		return err
	}
	if !owns(link, iface.Name, iface.Key) {
		klog.FromContext(ctx).Info("Left an interface alone: it has the name of a removed one and is not ours",
			"interface", iface.Name, "wanted", iface.Key.String(), "kind", link.kind, "alias", link.alias, "mac", link.mac.String())
		return nil
	}
	if _, err := l.removal.Do(ctx, link.index); err != nil {
		return fmt.Errorf("remove interface %s of %v: %w", iface.Name, iface.Key, err)
	}
	return nil
}

// owns reports whether link is the host's end that Link made for key: a veth
// of that very name which carries our alias, or, when the process was killed
// before it could set one, the MAC address that only we derive.
func owns(link linkInfo, name string, key ifstore.Key) bool {
	if link.kind != "veth" || link.name != name {
		return false
	}
	return link.alias == alias(key) || link.alias == "" && link.mac == hostMAC(key)
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

// removeLinks deletes links of the host. Deleting a link waits for the
// kernel's readers; links of one group wait once. The group exists for the one
// request: its number is drawn anew each time, and before the request is sent
// the kernel's list must show our links in it and nobody else's. In any doubt
// each link goes alone.
func removeLinks(_ context.Context, indexes []int) []join.Result[struct{}] {
	results := make([]join.Result[struct{}], len(indexes))
	c, err := dialRTNL()
	if err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	defer c.close()
	if len(indexes) > 1 {
		// What the group did not remove is found below.
		_ = removeGroup(c, indexes)
	}
	for i, index := range indexes {
		results[i].Err = remove(c, index)
	}
	return results
}

func removeGroup(c *rtnl, indexes []int) error {
	group := newGroup()
	ours := make(map[int]bool, len(indexes))
	for _, index := range indexes {
		replies, err := c.do(setGroup(index, group))
		if err != nil {
			return err
		}
		if replies[0].err == nil {
			ours[index] = true
		}
	}
	members, err := groupMembers(c, group)
	if err != nil {
		return err
	}
	for _, index := range members {
		if !ours[index] {
			return fmt.Errorf("link %d, not ours, is in group %#x", index, group)
		}
	}
	replies, err := c.do(deleteGroup(group))
	if err != nil {
		return err
	}
	return replies[0].err
}

// newGroup draws a link group number from the upper half of the range, where
// neither administrators nor other programs place theirs.
func newGroup() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint32(b[:]) | 1<<31
}

// groupMembers lists the links of a group.
func groupMembers(c *rtnl, group uint32) (members []int, err error) {
	req, _ := request(unix.RTM_GETLINK, 0, 0)
	req.AddData(skipStats())
	var broken error
	err = c.dump(req, func(b []byte) {
		link, err := parseLink(b)
		if err != nil {
			broken = err
		} else if link.group == group {
			members = append(members, link.index)
		}
	})
	return members, errors.Join(err, broken)
}
