package fakehns

import (
	"testing"

	"golang.org/x/sys/windows"
)

// Attach starts a Server for the calls that this process makes until the test
// ends. It fails on a real Windows, whose HNS the test would change.
func Attach(tb testing.TB) *Server {
	tb.Helper()
	// Ours has a procedure more than Microsoft's.
	if err := windows.NewLazySystemDLL("computenetwork.dll").NewProc("FakeHnsAdapters").Find(); err != nil {
		tb.Fatalf("computenetwork.dll is not the fake one, so this test would change the HNS of this machine: run it under Wine (make wine): %v", err)
	}
	s := New()
	addr, err := s.Start("127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Setenv("FAKE_HNS_ADDR", addr)
	tb.Cleanup(func() { s.Close() })
	return s
}
