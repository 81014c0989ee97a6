package podnettest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Addresses is a podnet.Addresses and AddressSweeper in memory. Methods may be
// called concurrently.
type Addresses struct {
	Faults

	mu     sync.Mutex
	subnet netip.Prefix
	leases map[ifstore.Key]netip.Addr
}

// NewAddresses returns an address manager for subnet, whose first address is
// the gateway.
func NewAddresses(subnet netip.Prefix) *Addresses {
	return &Addresses{subnet: subnet.Masked(), leases: make(map[ifstore.Key]netip.Addr)}
}

// Leases returns the keys with a reservation, sorted.
func (a *Addresses) Leases() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []string
	for key := range a.leases {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	return keys
}

// Allocate implements podnet.Addresses.
func (a *Addresses) Allocate(ctx context.Context, req podnet.Request) (podnet.Allocation, error) {
	if err := a.enter(ctx, "Allocate", req.Key.String()); err != nil {
		return podnet.Allocation{}, err
	}
	ip, err := a.reserve(req.Key)
	if err != nil {
		return podnet.Allocation{}, err
	}
	if err := a.leave(ctx, "Allocate", req.Key.String()); err != nil {
		return podnet.Allocation{}, err
	}
	gateway := a.subnet.Addr().Next()
	return podnet.Allocation{
		IPAM:      "podnettest",
		Addresses: []ifstore.Address{{Prefix: netip.PrefixFrom(ip, a.subnet.Bits()), Gateway: gateway}},
		Routes:    []ifstore.Route{{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}},
	}, nil
}

func (a *Addresses) reserve(key ifstore.Key) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.leases[key]; ok {
		return ip, nil
	}
	taken := slices.Collect(maps.Values(a.leases))
	for ip := a.subnet.Addr().Next().Next(); a.subnet.Contains(ip); ip = ip.Next() {
		if !slices.Contains(taken, ip) {
			a.leases[key] = ip
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no free address in %s", a.subnet)
}

// Release implements podnet.Addresses.
func (a *Addresses) Release(ctx context.Context, key ifstore.Key) error {
	if err := a.enter(ctx, "Release", key.String()); err != nil {
		return err
	}
	a.mu.Lock()
	delete(a.leases, key)
	a.mu.Unlock()
	return a.leave(ctx, "Release", key.String())
}

// Check implements podnet.Addresses.
func (a *Addresses) Check(ctx context.Context, iface ifstore.Interface) error {
	if err := a.enter(ctx, "Check", iface.Key.String()); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.leases[iface.Key]; !ok || !slices.Contains(iface.IPs(), ip) {
		return fmt.Errorf("%v is not reserved for %s", iface.IPs(), iface.Key)
	}
	return nil
}

// Keep implements podnet.AddressSweeper.
func (a *Addresses) Keep(ctx context.Context, keys []ifstore.Key) (freed int, err error) {
	if err := a.enter(ctx, "Keep", fmt.Sprint(len(keys))); err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.leases, func(key ifstore.Key, _ netip.Addr) bool {
		gone := !slices.Contains(keys, key)
		if gone {
			freed++
		}
		return gone
	})
	return freed, nil
}
