package ipam

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/alexflint/go-filemutex"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Name is what interfaces record as the owner of their addresses.
const Name = "antrea-lite"

// ErrNoAddress is wrapped by Allocate's errors: nothing free, or the address asked for cannot be had.
var ErrNoAddress = errors.New("no address")

const (
	defaultLockTimeout = 5 * time.Second
	lockPause          = 10 * time.Millisecond
)

// Range is one range of addresses. Pods get every usable address but the gateway's.
type Range struct {
	Prefix  netip.Prefix
	Gateway netip.Addr
}

// Config configures a Manager.
type Config struct {
	// Dir holds the leases, one sub-directory for each Network.
	Dir     string
	Network string
	Ranges  []Range // one for each family; each gives one address to every interface
	// BootID, when not empty, makes leases of another boot void. Without it they
	// outlive the boot, and every lease is flushed to the disk, which takes milliseconds.
	BootID string
	// LockTimeout bounds the wait for another process that uses the directory; 0: 5 s.
	LockTimeout time.Duration
}

// Manager implements podnet.Addresses and podnet.AddressSweeper. Methods may be called concurrently.
type Manager struct {
	conf  Config
	lock  *filemutex.FileMutex
	sem   chan struct{} // held during a call; a channel, so that waiting ends with ctx
	store *store
	close func() error
	sets  []*allocator.RangeSet
}

// New opens the lease directory and keeps it locked until Close.
func New(ctx context.Context, conf Config) (*Manager, error) {
	m := &Manager{conf: conf, sem: make(chan struct{}, 1)}
	for _, r := range conf.Ranges {
		set := &allocator.RangeSet{{Subnet: types.IPNet(net.IPNet{IP: r.Prefix.Addr().AsSlice(), Mask: net.CIDRMask(r.Prefix.Bits(), r.Prefix.Addr().BitLen())}), Gateway: r.Gateway.AsSlice()}}
		if err := set.Canonicalize(); err != nil {
			return nil, fmt.Errorf("address range %s: %w", r.Prefix, err)
		}
		m.sets = append(m.sets, set)
	}
	dir := filepath.Join(conf.Dir, conf.Network)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lease directory: %w", err)
	}
	var err error
	if m.lock, err = acquire(ctx, filepath.Join(dir, lockName), conf.LockTimeout); err != nil {
		return nil, err
	}
	if err := m.open(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("leases in %s: %w", dir, err), m.lock.Close())
	}
	// A second time would close what Windows gave the same handle number to meanwhile.
	m.close = sync.OnceValue(func() error { return errors.Join(m.store.Close(), m.lock.Close()) })
	return m, nil
}

func (m *Manager) open(dir string) (err error) {
	if err := dropOldBoot(dir, m.conf.BootID); err != nil {
		return err
	}
	m.store, err = openStore(m.conf.Dir, m.conf.Network, m.conf.BootID == "")
	return err
}

// Close gives the directory back.
func (m *Manager) Close() error { return m.close() }

// acquire takes the file lock, waiting for another holder for at most the timeout.
func acquire(ctx context.Context, path string, timeout time.Duration) (*filemutex.FileMutex, error) {
	if timeout == 0 {
		timeout = defaultLockTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	lock, err := filemutex.New(path)
	if err != nil {
		return nil, fmt.Errorf("lease lock %s: %w", path, err)
	}
	for {
		switch err := lock.TryLock(); {
		case err == nil:
			return lock, nil
		case !errors.Is(err, filemutex.AlreadyLocked):
			return nil, errors.Join(fmt.Errorf("lease lock %s: %w", path, err), lock.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lease lock %s: another process has held it for %s: give the agent a stateDir of its own or end that process", path, timeout), lock.Close())
		case <-time.After(lockPause):
		}
	}
}

// dropOldBoot empties the directory when its stamp is of another boot.
func dropOldBoot(dir, bootID string) error {
	if bootID == "" {
		return nil
	}
	stamp := filepath.Join(dir, stampName)
	b, err := os.ReadFile(stamp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(b) == bootID {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := leaseAddr(e.Name()); err == nil {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(stamp, []byte(bootID), 0o644)
}

// with runs f while no other call runs.
func (m *Manager) with(ctx context.Context, f func() error) error {
	select {
	case m.sem <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for the address manager: %w", context.Cause(ctx))
	}
	defer func() { <-m.sem }()
	return f()
}

// Allocate reserves one address of each range for req.Key, those of req.WantIPs
// where given. Repeated, it returns the same ones. On error nothing is kept.
func (m *Manager) Allocate(ctx context.Context, req podnet.Request) (podnet.Allocation, error) {
	alloc := podnet.Allocation{IPAM: Name}
	err := m.with(ctx, func() error {
		wants, err := m.assign(req.WantIPs)
		if err != nil {
			return err
		}
		for i, r := range m.conf.Ranges {
			ip, fresh, err := m.one(i, req.Key, wants[i])
			if err != nil {
				if len(alloc.Addresses) > 0 || fresh {
					_, undoErr := m.store.release(req.Key)
					err = errors.Join(err, undoErr)
				}
				return err
			}
			alloc.Addresses = append(alloc.Addresses, ifstore.Address{Prefix: netip.PrefixFrom(ip, r.Prefix.Bits()), Gateway: r.Gateway})
			alloc.Routes = append(alloc.Routes, ifstore.Route{Dst: netip.PrefixFrom(unspecified(ip), 0), GW: r.Gateway})
		}
		return nil
	})
	if err != nil {
		return podnet.Allocation{}, err
	}
	return alloc, nil
}

// assign sorts the requested addresses by range; the zero Addr leaves the choice to us.
func (m *Manager) assign(want []netip.Addr) ([]netip.Addr, error) {
	out := make([]netip.Addr, len(m.conf.Ranges))
	for _, ip := range want {
		found := false
		for i, r := range m.conf.Ranges {
			if !r.Prefix.Contains(ip) {
				continue
			}
			if out[i].IsValid() && out[i] != ip {
				return nil, fmt.Errorf("%w: %s and %s are asked for, both of range %s: %w: ask for one", podnet.ErrBadRequest, out[i], ip, r.Prefix, ErrNoAddress)
			}
			out[i], found = ip, true
		}
		if !found {
			return nil, fmt.Errorf("%w: the requested address %s is in none of this node's ranges %s: %w: ask for one inside", podnet.ErrBadRequest, ip, m.ranges(), ErrNoAddress)
		}
	}
	return out, nil
}

// one gets the address of range i. fresh tells that it was reserved by this call.
func (m *Manager) one(i int, key ifstore.Key, want netip.Addr) (ip netip.Addr, fresh bool, err error) {
	r := m.conf.Ranges[i]
	for _, held := range m.store.ips[key] {
		if !r.Prefix.Contains(held) {
			continue
		}
		if want.IsValid() && want != held {
			return ip, false, fmt.Errorf("%w: %s is asked for and %s holds %s already: %w: send DEL first", podnet.ErrBadRequest, want, key, held, ErrNoAddress)
		}
		return held, false, nil
	}
	var wantIP net.IP
	if want.IsValid() {
		if err := m.usable(i, want); err != nil {
			return ip, false, err
		}
		wantIP = want.AsSlice()
	} else if free := m.free(r); free.Sign() <= 0 {
		return ip, false, fmt.Errorf("%w for %s: all %s addresses of range %s are taken: remove Pods, or send GC if their runtime lost them", ErrNoAddress, key, m.size(r), r.Prefix)
	}
	got, err := allocator.NewIPAllocator(m.sets[i], m.store, i).Get(key.ContainerID, key.IfName, wantIP)
	if err != nil {
		return ip, false, fmt.Errorf("%w of range %s for %s: %w", ErrNoAddress, r.Prefix, key, err)
	}
	ip, _ = netip.AddrFromSlice(got.Address.IP)
	return ip.Unmap(), true, nil
}

// usable says why a requested address cannot be had, in our own words.
func (m *Manager) usable(i int, ip netip.Addr) error {
	r := m.conf.Ranges[i]
	if ip == r.Gateway {
		return fmt.Errorf("%w: %s is the gateway of range %s: %w: ask for another", podnet.ErrBadRequest, ip, r.Prefix, ErrNoAddress)
	}
	if !m.sets[i].Contains(ip.AsSlice()) {
		return fmt.Errorf("%w: %s is the network or broadcast address of range %s: %w: ask for another", podnet.ErrBadRequest, ip, r.Prefix, ErrNoAddress)
	}
	if owner, taken := m.store.byIP[ip]; taken {
		return fmt.Errorf("%w: the requested address %s is taken by %s: ask for another or remove that one", ErrNoAddress, ip, owner)
	}
	return nil
}

// size is the number of addresses for Pods.
func (m *Manager) size(r Range) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), uint(r.Prefix.Addr().BitLen()-r.Prefix.Bits()))
	out := int64(2) // network address and gateway
	if r.Prefix.Addr().Is4() {
		out = 3 // and broadcast
	}
	return n.Sub(n, big.NewInt(out))
}

func (m *Manager) free(r Range) *big.Int {
	taken := int64(0)
	for ip := range m.store.byIP {
		if r.Prefix.Contains(ip) {
			taken++
		}
	}
	n := m.size(r)
	return n.Sub(n, big.NewInt(taken))
}

func (m *Manager) ranges() string {
	var out []string
	for _, r := range m.conf.Ranges {
		out = append(out, r.Prefix.String())
	}
	return strings.Join(out, " and ")
}

func unspecified(ip netip.Addr) netip.Addr {
	if ip.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}
