package hostif

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"
)

// MTUSetter sets the MTU of interfaces in any compartment. Windows keeps the
// MTU of an interface per IP version and finds the interface only in the
// compartment of the calling thread, so the thread goes there for the call.
// All methods may be called concurrently.
type MTUSetter struct {
	getThread, setThread, get, set *windows.LazyProc
}

// NewMTUSetter returns a setter, or an error that wraps errors.ErrUnsupported
// and names the procedure of iphlpapi.dll that this system lacks.
func NewMTUSetter() (*MTUSetter, error) {
	dll := windows.NewLazySystemDLL("iphlpapi.dll")
	m := &MTUSetter{
		getThread: dll.NewProc("GetCurrentThreadCompartmentId"), setThread: dll.NewProc("SetCurrentThreadCompartmentId"),
		get: dll.NewProc("GetIpInterfaceEntry"), set: dll.NewProc("SetIpInterfaceEntry"),
	}
	for _, p := range []*windows.LazyProc{m.getThread, m.setThread, m.get, m.set} {
		if err := p.Find(); err != nil {
			return nil, fmt.Errorf("the MTU of host interfaces cannot be set: %w: %s of iphlpapi.dll: %w", errors.ErrUnsupported, p.Name, err)
		}
	}
	return m, nil
}

// SetMTU sets the MTU of an interface, in bytes, for each IP version that it
// speaks and reads it back. What is right already is not written. An interface
// that has gone, or speaks no IP yet, is an error that wraps
// windows.ERROR_NOT_FOUND. The calls cannot be interrupted.
func (m *MTUSetter) SetMTU(ctx context.Context, a Adapter, mtu int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// A goroutine of its own: when the thread cannot come back it must end, and
	// a locked thread does so with its goroutine.
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		back, err := m.in(a.Compartment, func() error { return m.setAll(a, uint32(mtu)) })
		if back {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return fmt.Errorf("set the MTU of host interface %q (index %d, compartment %d) to %d: %w", a.Alias, a.Index, a.Compartment, mtu, err)
	}
	return nil
}

// in runs fn with the thread in that compartment; back tells that the thread is
// where it was.
func (m *MTUSetter) in(compartment uint32, fn func() error) (back bool, err error) {
	home, _, _ := m.getThread.Call()
	if compartment == 0 || uint32(home) == compartment {
		return true, fn()
	}
	if code, _, _ := m.setThread.Call(uintptr(compartment)); code != 0 {
		return true, fmt.Errorf("enter the compartment: %w", windows.Errno(code))
	}
	err = fn()
	code, _, _ := m.setThread.Call(home)
	return code == 0, err
}

func (m *MTUSetter) setAll(a Adapter, mtu uint32) error {
	speaks := false
	for _, family := range []uint16{windows.AF_INET, windows.AF_INET6} {
		err := m.setOne(a, family, mtu)
		if errors.Is(err, windows.ERROR_NOT_FOUND) {
			continue
		}
		if err != nil {
			return err
		}
		speaks = true
	}
	if !speaks {
		return fmt.Errorf("it speaks no IP: %w", windows.ERROR_NOT_FOUND)
	}
	return nil
}

func (m *MTUSetter) setOne(a Adapter, family uint16, mtu uint32) error {
	row, err := m.read(a, family)
	if err != nil || row.NlMtu == mtu {
		return err
	}
	row.NlMtu = mtu
	row.SitePrefixLength = 0 // SetIpInterfaceEntry refuses what GetIpInterfaceEntry gives for IPv4
	if code, _, _ := m.set.Call(uintptr(unsafe.Pointer(&row))); code != 0 {
		return fmt.Errorf("SetIpInterfaceEntry, family %d: %w", family, windows.Errno(code))
	}
	row, err = m.read(a, family)
	if err == nil && row.NlMtu != mtu {
		return fmt.Errorf("family %d: it was accepted and is still %d", family, row.NlMtu)
	}
	return err
}

func (m *MTUSetter) read(a Adapter, family uint16) (windows.MibIpInterfaceRow, error) {
	row := windows.MibIpInterfaceRow{Family: family, InterfaceLuid: a.LUID, InterfaceIndex: a.Index}
	if code, _, _ := m.get.Call(uintptr(unsafe.Pointer(&row))); code != 0 {
		return row, fmt.Errorf("GetIpInterfaceEntry, family %d: %w", family, windows.Errno(code))
	}
	return row, nil
}
