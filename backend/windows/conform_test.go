package windows_test

import (
	"testing"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestLinkerConforms(t *testing.T) {
	podnettest.TestLinker(t, func(t *testing.T) podnettest.LinkerUnderTest {
		hns := node()
		return podnettest.LinkerUnderTest{
			Linker:    newLinker(t, hns),
			Request:   func(_ *testing.T, n int) podnet.Request { return request(hns, n) },
			Leftovers: func(*testing.T) []string { return names(hns) },
			Break: func(_ *testing.T, iface ifstore.Interface) {
				hns.ChangeEndpoints(iface.Name, func(e *windows.Endpoint) { e.Namespace = windows.GUID{} })
			},
		}
	})
}
