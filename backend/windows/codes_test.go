package windows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/podnet"
)

// What users see of the codes that are known from reports, and what callers
// decide on. Neither depends on HNS's own words.
func TestCodesAreDecoded(t *testing.T) {
	for _, test := range []struct {
		code  windows.Code
		words string
		is    error
	}{
		{0x490, "no such object", windows.ErrNotFound},
		{0x803b0001, "network is gone", windows.ErrNotFound},
		{0x803b0002, "endpoint is gone", windows.ErrNotFound},
		{0x1392, "exists already", windows.ErrTaken},
		{0xb7, "exists already", windows.ErrTaken},
		{0x34, "network of that name", windows.ErrTaken},
		{0x803b0010, "exists already", windows.ErrTaken},
		{0x803b0013, "port of that name", windows.ErrTaken},
		{0x803b002f, "another endpoint has it", windows.ErrTaken},
		{0x803b0014, "attached already", windows.ErrAttached},
		{0x803b0015, "may still hold the namespace", nil},
		{0x803b0004, "switch is missing", nil},
		{0x803b0005, "Pod CIDR", nil},
		{0x803b0006, "uplink", nil},
		{0x803b001e, "no subnet", nil},
		{0x803b001f, "install Open vSwitch", nil},
		{0x803b0020, "is stopping", podnet.ErrTryAgain},
		{0x803b002b, "another namespace", nil},
		{0x803b002c, "in use", nil},
		{0x803b002e, "sandbox may be ending", nil},
		{0x6ba, "does not run", podnet.ErrTryAgain},
		{0x6be, "in the middle", podnet.ErrTryAgain},
		{0x426, "not started", podnet.ErrTryAgain},
		{0x425, "does not accept", podnet.ErrTryAgain},
		{0xaa, "busy", podnet.ErrTryAgain},
		{0x5b4, "gave up waiting", podnet.ErrTryAgain},
		{0x5, "administrator", nil},
		{0x12345, "certutil -error 0x12345", nil},
	} {
		err := fmt.Errorf("outer: %w", &windows.HNSError{Op: "delete endpoint e1", Code: test.code, Text: "Element not found."})
		text := err.Error()
		for _, want := range []string{test.words, fmt.Sprintf("0x%x", uint32(test.code)), "delete endpoint e1", "Element not found."} {
			if !strings.Contains(text, want) {
				t.Errorf("0x%x: %q does not say %q", uint32(test.code), text, want)
			}
		}
		for _, sentinel := range []error{windows.ErrNotFound, windows.ErrTaken, windows.ErrAttached, podnet.ErrTryAgain} {
			if got, want := errors.Is(err, sentinel), sentinel == test.is; got != want {
				t.Errorf("0x%x: errors.Is(err, %v) is %v", uint32(test.code), sentinel, got)
			}
		}
	}
}
