package prepare

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// callTime bounds the wait for one answer of HNS. A call that hangs goes on; the
// program that made it ends, or makes the next in a minute.
const callTime = 30 * time.Second

// HNS calls the Host Network Service of this node (vmcompute.dll).
type HNS struct{}

// Call implements Caller.
func (HNS) Call(ctx context.Context, method, path, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer in %s: is the service hns well?", callTime))
	defer cancel()
	type result struct {
		answer []byte
		err    error
	}
	done := make(chan result, 1)
	go func() {
		answer, err := hnsCall(method, path, body)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

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
