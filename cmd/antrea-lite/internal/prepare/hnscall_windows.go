package prepare

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// NewHNS returns the HNS of this node (vmcompute.dll). It asks nothing of it yet.
func NewHNS() *HNS { return newHNS(hnsCall) }

func hnsCall(method, path, body string) ([]byte, error) {
	proc := windows.NewLazySystemDLL("vmcompute.dll").NewProc("HNSCall")
	if err := proc.Find(); err != nil {
		return nil, fmt.Errorf("%w: enable the Windows feature Containers", err)
	}
	var args [3]*uint16
	for i, s := range []string{method, path, body} {
		p, err := windows.UTF16PtrFromString(s)
		if err != nil {
			return nil, err
		}
		args[i] = p
	}
	var answer *uint16
	hr, _, _ := proc.Call(uintptr(unsafe.Pointer(args[0])), uintptr(unsafe.Pointer(args[1])), uintptr(unsafe.Pointer(args[2])), uintptr(unsafe.Pointer(&answer)))
	if answer != nil {
		defer windows.CoTaskMemFree(unsafe.Pointer(answer))
	}
	if int32(hr) < 0 {
		return nil, fmt.Errorf("HNSCall: error 0x%08x", uint32(hr))
	}
	return []byte(windows.UTF16PtrToString(answer)), nil
}
