package ipam

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/disk"

	"github.com/antrea-lite/podnet/ifstore"
)

// lastPrefix and lockName are host-local's other files in a lease directory.
const (
	lastPrefix = "last_reserved_ip."
	lockName   = "lock"
)

// store is host-local's disk store with an index, so that looking for a
// container's leases does not read every file. It satisfies host-local's
// backend.Store. It is guarded by the Manager: Lock and Unlock do nothing.
type store struct {
	disk *disk.Store
	dir  string
	// durable leases are flushed to the disk: they outlive the boot. Those that a
	// reboot makes void anyway are safe in the page cache, kill -9 or not.
	durable bool
	byIP    map[netip.Addr]ifstore.Key
	ips     map[ifstore.Key][]netip.Addr
	last    map[string]net.IP // by host-local\'s name of the range
}

// openStore reads the leases of dir. A file without content is what a crash
// left between creation and write; nobody was told of that address, so it goes.
func openStore(parent, network string, durable bool) (*store, error) {
	d, err := disk.New(network, parent)
	if err != nil {
		return nil, err
	}
	s := &store{disk: d, dir: filepath.Join(parent, network), durable: durable, byIP: map[netip.Addr]ifstore.Key{}, ips: map[ifstore.Key][]netip.Addr{}, last: map[string]net.IP{}}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	for _, e := range entries {
		if err := s.load(e); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return s, nil
}

func (s *store) load(e fs.DirEntry) error {
	if !e.Type().IsRegular() || e.Name() == lockName || strings.HasPrefix(e.Name(), lastPrefix) {
		return nil
	}
	ip, err := leaseAddr(e.Name())
	if err != nil {
		return nil // a stranger's file, harmless
	}
	path := filepath.Join(s.dir, e.Name())
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	id, ifName, ok := strings.Cut(strings.TrimSpace(string(b)), disk.LineBreak)
	if !ok || id == "" || ifName == "" {
		return os.Remove(path)
	}
	s.add(ip, ifstore.Key{ContainerID: id, IfName: ifName})
	return nil
}

// leaseAddr is the address that a lease file is named for. On Windows host-local
// writes the colons of IPv6 as underscores.
func leaseAddr(file string) (netip.Addr, error) {
	return netip.ParseAddr(strings.ReplaceAll(file, "_", ":"))
}

func (s *store) add(ip netip.Addr, key ifstore.Key) {
	s.byIP[ip] = key
	s.ips[key] = append(s.ips[key], ip)
}

// Reserve takes an address: false when somebody has it.
func (s *store) Reserve(id, ifName string, ip net.IP, rangeID string) (bool, error) {
	addr, ok := netip.AddrFromSlice(ip)
	if !ok {
		return false, fmt.Errorf("%v is no address", ip)
	}
	addr = addr.Unmap()
	if _, taken := s.byIP[addr]; taken {
		return false, nil
	}
	// host-local truncates and rewrites this file for every lease, which ext4 takes
	// for a replacement and flushes on close: 80 ms on a busy disk. A new file is not.
	if err := os.Remove(disk.GetEscapedPath(s.dir, lastPrefix+rangeID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	ok, err := s.disk.Reserve(id, ifName, ip, rangeID)
	if err != nil || !ok {
		return ok, err
	}
	if err := s.sync(addr); err != nil {
		return false, errors.Join(err, os.Remove(s.path(addr)))
	}
	s.add(addr, ifstore.Key{ContainerID: id, IfName: ifName})
	s.last[rangeID] = ip
	return true, nil
}

// sync makes the lease file and its directory entry durable, if it has to outlive the boot.
func (s *store) sync(ip netip.Addr) error {
	if !s.durable {
		return nil
	}
	for _, path := range []string{s.path(ip), s.dir} {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(fsync(f), f.Close()); err != nil {
			return fmt.Errorf("write %s to disk: %w", path, err)
		}
	}
	return nil
}

// release frees every address of key and returns how many.
func (s *store) release(key ifstore.Key) (int, error) {
	var errs []error
	var left []netip.Addr
	for _, ip := range s.ips[key] {
		if err := os.Remove(s.path(ip)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			left = append(left, ip)
			continue
		}
		delete(s.byIP, ip)
	}
	freed := len(s.ips[key]) - len(left)
	if len(left) == 0 {
		delete(s.ips, key)
	} else {
		s.ips[key] = left
	}
	return freed, errors.Join(errs...)
}

func (s *store) path(ip netip.Addr) string { return disk.GetEscapedPath(s.dir, ip.String()) }

// Lock does nothing: the Manager holds the lock around every call.
func (s *store) Lock() error { return nil }

// Unlock does nothing, see Lock.
func (s *store) Unlock() error { return nil }

// Close closes the lock file that host-local's store keeps open.
func (s *store) Close() error { return s.disk.Close() }

// LastReservedIP is where host-local's round robin goes on.
func (s *store) LastReservedIP(rangeID string) (net.IP, error) {
	if ip, ok := s.last[rangeID]; ok {
		return ip, nil
	}
	return s.disk.LastReservedIP(rangeID)
}

// ReleaseByID frees the addresses of one interface.
func (s *store) ReleaseByID(id, ifName string) error {
	_, err := s.release(ifstore.Key{ContainerID: id, IfName: ifName})
	return err
}

// GetByID returns the addresses of one interface.
func (s *store) GetByID(id, ifName string) []net.IP {
	var out []net.IP
	for _, ip := range s.ips[ifstore.Key{ContainerID: id, IfName: ifName}] {
		out = append(out, ip.AsSlice())
	}
	return out
}
