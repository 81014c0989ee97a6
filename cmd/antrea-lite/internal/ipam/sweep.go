package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/antrea-lite/podnet/ifstore"
)

// Release frees every address of key. Nothing to free: nil.
func (m *Manager) Release(ctx context.Context, key ifstore.Key) error {
	return m.with(ctx, func() error {
		if _, err := m.store.release(key); err != nil {
			return fmt.Errorf("release the addresses of %s: %w", key, err)
		}
		return nil
	})
}

// Check verifies that the addresses of iface are reserved for it.
func (m *Manager) Check(ctx context.Context, iface ifstore.Interface) error {
	return m.with(ctx, func() error {
		for _, ip := range iface.IPs() {
			switch owner, taken := m.store.byIP[ip]; {
			case !taken:
				return fmt.Errorf("address %s of %s is not reserved in %s", ip, iface.Key, m.store.dir)
			case owner != iface.Key:
				return fmt.Errorf("address %s of %s is reserved for %s", ip, iface.Key, owner)
			}
		}
		return nil
	})
}

// Keep frees the leases of everything but keys and returns the number of addresses freed.
func (m *Manager) Keep(ctx context.Context, keys []ifstore.Key) (freed int, err error) {
	keep := make(map[ifstore.Key]bool, len(keys))
	for _, k := range keys {
		keep[k] = true
	}
	err = m.with(ctx, func() error {
		var errs []error
		for key := range m.store.ips {
			if keep[key] {
				continue
			}
			n, err := m.store.release(key)
			freed += n
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	return freed, err
}

// Adopt reserves the addresses that interfaces already have, for a lease
// directory that was lost while Pods live on. An address that another
// interface holds is an error that names both; the others are adopted all the same.
func (m *Manager) Adopt(ctx context.Context, ifaces []ifstore.Interface) error {
	return m.with(ctx, func() error {
		var errs []error
		for _, iface := range ifaces {
			if iface.IPAM != Name {
				continue
			}
			for _, ip := range iface.IPs() {
				if owner, taken := m.store.byIP[ip]; taken {
					if owner != iface.Key {
						errs = append(errs, fmt.Errorf("address %s of %s is reserved for %s", ip, iface.Key, owner))
					}
					continue
				}
				if _, err := m.store.Reserve(iface.ContainerID, iface.IfName, ip.AsSlice(), m.rangeID(ip)); err != nil {
					errs = append(errs, fmt.Errorf("adopt %s of %s: %w", ip, iface.Key, err))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// Usage tells how many addresses of each range are taken, in the order of Config.Ranges.
func (m *Manager) Usage(ctx context.Context) ([]Usage, error) {
	var out []Usage
	err := m.with(ctx, func() error {
		for _, r := range m.conf.Ranges {
			u := Usage{Range: r, Size: m.size(r).String()}
			for ip := range m.store.byIP {
				if r.Prefix.Contains(ip) {
					u.Taken++
				}
			}
			u.Full = m.free(r).Sign() <= 0
			out = append(out, u)
		}
		return nil
	})
	return out, err
}

// Usage is the state of one range.
type Usage struct {
	Range
	Taken int
	Size  string // decimal; an IPv6 range exceeds every integer
	Full  bool
}

// rangeID is host-local's name of the range that holds ip.
func (m *Manager) rangeID(ip netip.Addr) string {
	i := slices.IndexFunc(m.conf.Ranges, func(r Range) bool { return r.Prefix.Contains(ip) })
	return strconv.Itoa(max(i, 0))
}
