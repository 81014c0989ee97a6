package hostif

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/antrea-lite/podnet/ifstore"
)

const (
	// listFlags: with ALL_COMPARTMENTS the vNICs of Pods are listed, with
	// ALL_INTERFACES those that no protocol is bound to yet. Addresses and DNS
	// servers are left out: nobody reads them and they are most of the answer.
	listFlags = windows.GAA_FLAG_INCLUDE_ALL_COMPARTMENTS | windows.GAA_FLAG_INCLUDE_ALL_INTERFACES |
		windows.GAA_FLAG_SKIP_UNICAST | windows.GAA_FLAG_SKIP_ANYCAST | windows.GAA_FLAG_SKIP_MULTICAST | windows.GAA_FLAG_SKIP_DNS_SERVER

	// listTries bounds the calls of one List: interfaces may be added between the
	// answer that says how much room they need and the next call.
	listTries = 8
	firstRoom = 16 << 10 // bytes; what Microsoft advises to begin with

	noMTU = math.MaxUint32 // the loopback's
)

// List returns all interfaces of the node in all compartments. It takes about a
// millisecond; the system call cannot be interrupted, so ctx is looked at only
// between calls. It may be called concurrently.
func List(ctx context.Context) ([]Adapter, error) {
	room := uint32(firstRoom)
	for range listTries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Words without pointers: aligned as the structures need it, and of no
		// interest to the garbage collector, which must not follow what Windows
		// leaves between them.
		buffer := make([]uint64, room/8+1)
		size := uint32(len(buffer) * 8)
		first := (*windows.IpAdapterAddresses)(unsafe.Pointer(&buffer[0]))
		err := windows.GetAdaptersAddresses(windows.AF_UNSPEC, listFlags, 0, first, &size)
		switch {
		case err == nil:
			adapters := read(first)
			runtime.KeepAlive(buffer) // read has copied everything
			return adapters, nil
		case errors.Is(err, windows.ERROR_NO_DATA):
			return nil, nil
		case !errors.Is(err, windows.ERROR_BUFFER_OVERFLOW):
			return nil, fmt.Errorf("list the host's interfaces (GetAdaptersAddresses): %w", err)
		}
		room = max(size, room) + room/2 // what it asks for, and some for interfaces that come meanwhile
	}
	return nil, fmt.Errorf("list the host's interfaces (GetAdaptersAddresses): %d bytes were not enough after %d calls: interfaces come faster than they can be listed", room, listTries)
}

// read copies the list. Nothing in the result points into it.
func read(first *windows.IpAdapterAddresses) []Adapter {
	var adapters []Adapter
	for a := first; a != nil; a = a.Next {
		adapter := Adapter{
			Alias: windows.UTF16PtrToString(a.FriendlyName), Description: windows.UTF16PtrToString(a.Description),
			GUID: windows.BytePtrToString(a.AdapterName), Index: a.IfIndex, LUID: a.Luid, Compartment: a.CompartmentId,
			Up: a.OperStatus == windows.IfOperStatusUp,
		}
		if adapter.Index == 0 {
			adapter.Index = a.Ipv6IfIndex // of an interface without IPv4
		}
		if a.Mtu != noMTU {
			adapter.MTU = int(a.Mtu)
		}
		if a.PhysicalAddressLength == uint32(len(adapter.MAC)) {
			adapter.MAC = ifstore.MAC(a.PhysicalAddress[:len(adapter.MAC)])
		}
		adapters = append(adapters, adapter)
	}
	return adapters
}
