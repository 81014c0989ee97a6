package podnettest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// under makes the bridge of a readiness under test.
func under(bridge *podnettest.Bridge) podnettest.ReadinessUnderTest {
	return podnettest.ReadinessUnderTest{
		Create: func(t *testing.T, name string) podnet.PortKey {
			return bridge.Insert(podnet.Port{PortKey: podnet.PortKey{Name: name}})
		},
		Number: func(t *testing.T, name string, ofport uint32) { bridge.SetOFPort(name, int32(ofport), "") },
		Delete: func(t *testing.T, name string) { bridge.Remove(name) },
	}
}

func TestWaitingReadiness(t *testing.T) {
	podnettest.TestReadiness(t, func(t *testing.T) podnettest.ReadinessUnderTest {
		bridge := podnettest.NewBridge()
		u := under(bridge)
		u.Readiness, u.Waits = podnettest.NewWaitingReadiness(bridge), true
		return u
	})
}

func TestAsyncReadiness(t *testing.T) {
	podnettest.TestReadiness(t, func(t *testing.T) podnettest.ReadinessUnderTest {
		bridge := podnettest.NewBridge()
		u := under(bridge)
		u.Late = 20 * time.Millisecond
		readiness, err := podnettest.NewAsyncReadiness(bridge, async.Config{NotReadyAfter: u.Late})
		if err != nil {
			t.Fatal(err)
		}
		u.Readiness = readiness
		return u
	})
}

func TestFakeLinker(t *testing.T) {
	podnettest.TestLinker(t, func(t *testing.T) podnettest.LinkerUnderTest {
		linker := podnettest.NewLinker()
		return podnettest.LinkerUnderTest{
			Linker:    linker,
			Request:   func(_ *testing.T, n int) podnet.Request { return podnettest.NewRequest(string(rune('a' + n))) },
			Leftovers: func(*testing.T) []string { return linker.Names() },
			Break: func(t *testing.T, iface ifstore.Interface) {
				if err := linker.Unlink(t.Context(), iface); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
