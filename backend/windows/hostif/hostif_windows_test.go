package hostif_test

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
)

func list(t *testing.T) []hostif.Adapter {
	t.Helper()
	adapters, err := hostif.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return adapters
}

func TestListHasWhatPackageNetSees(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil || len(interfaces) == 0 {
		t.Fatalf("%v, %v", interfaces, err)
	}
	adapters := list(t)
	for _, want := range interfaces {
		got, ok := hostif.Find(adapters, want.Name)
		if !ok {
			t.Errorf("%s is missing in %+v", want.Name, adapters)
			continue
		}
		if mtu := max(want.MTU, 0); int(got.Index) != want.Index || got.MTU != mtu || got.Up != (want.Flags&net.FlagUp != 0) || got.GUID == "" {
			t.Errorf("%+v, want %+v", got, want)
		}
		if len(want.HardwareAddr) == 6 && !slices.Equal(got.MAC[:], want.HardwareAddr) {
			t.Errorf("%s: MAC %v, want %v", want.Name, got.MAC, want.HardwareAddr)
		}
	}
}

// HN-12: what a list gives must not point into the buffer that Windows filled.
func TestListsStayIntactUnderGCPressure(t *testing.T) {
	want := list(t)
	var kept [][]hostif.Adapter
	for n := range 1000 {
		kept = append(kept, list(t))
		fill := make([]byte, 64<<10) // where a freed buffer may have been
		for i := range fill {
			fill[i] = 0xa5
		}
		runtime.KeepAlive(fill)
		if n%10 == 0 {
			runtime.GC()
		}
	}
	for n, got := range kept {
		if !slices.Equal(got, want) {
			t.Fatalf("list %d became %+v, want %+v", n, got, want)
		}
	}
}

// Wine 8 has none of the procedures; Windows has them all.
func TestMTUIsSetOrTheMissingProcedureNamed(t *testing.T) {
	setter, err := hostif.NewMTUSetter()
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "of iphlpapi.dll") {
			t.Errorf("%v", err)
		}
		return
	}
	for _, a := range list(t) {
		if a.MTU > 0 && a.Compartment <= 1 && a.Up {
			if err := setter.SetMTU(t.Context(), a, a.MTU); err != nil { // as it is: nothing is written
				t.Error(err)
			}
			return
		}
	}
}
