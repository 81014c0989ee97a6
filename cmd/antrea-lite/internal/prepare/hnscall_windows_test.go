package prepare

import (
	"testing"

	"github.com/Microsoft/hcsshim/hcn"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
)

// TestExtensionOfARealCall goes through vmcompute.dll, which in tests leads to
// the fake service.
func TestExtensionOfARealCall(t *testing.T) {
	s := fakehns.New()
	addr, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Setenv("FAKE_HNS_ADDR", addr)
	n, err := (&hcn.HostComputeNetwork{Name: "net", Type: hcn.Transparent, SchemaVersion: hcn.SchemaVersion{Major: 2}}).Create()
	if err != nil {
		t.Fatal(err)
	}
	id, err := windows.ParseGUID(n.Id)
	if err != nil {
		t.Fatal(err)
	}
	e := Extension{NewHNS()}
	for _, want := range []bool{false, true} {
		if on, err := e.Enabled(t.Context(), id); on != want || err != nil {
			t.Errorf("enabled %v, %v", on, err)
		}
		if err := e.Enable(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Extended(n.Id) {
		t.Error("the service was not told")
	}
	if _, err := e.Enabled(t.Context(), windows.GUID{9}); err == nil {
		t.Error("a network that is not there has an extension")
	}
}
