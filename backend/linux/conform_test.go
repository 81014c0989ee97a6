package linux

import (
	"testing"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestReadinessConforms(t *testing.T) {
	podnettest.TestReadiness(t, func(t *testing.T) podnettest.ReadinessUnderTest {
		bridge := podnettest.NewBridge()
		return podnettest.ReadinessUnderTest{
			Readiness: NewReadiness(ReadinessConfig{Ports: bridge, Watches: []async.Watch{bridge.Watch()}}),
			Waits:     true,
			Create: func(_ *testing.T, name string) podnet.PortKey {
				return bridge.Insert(podnet.Port{PortKey: podnet.PortKey{Name: name}})
			},
			Number: func(_ *testing.T, name string, ofport uint32) { bridge.SetOFPort(name, int32(ofport), "") },
			Delete: func(_ *testing.T, name string) { bridge.Remove(name) },
		}
	})
}
