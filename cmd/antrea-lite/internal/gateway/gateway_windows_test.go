package gateway

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGatewayIsComparedAndLeftAlone: every difference is named, with what to do,
// and none is repaired.
func TestGatewayIsComparedAndLeftAlone(t *testing.T) {
	s := fakehns.New()
	addr, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Setenv("FAKE_HNS_ADDR", addr)
	own, other := netip.MustParsePrefix("10.10.0.1/24"), netip.MustParsePrefix("10.99.0.1/24")
	conf := Config{Name: "antrea-gw0", MTU: 1500, Addresses: []netip.Prefix{own}}
	well := fakehns.Adapter{Name: conf.Name, Index: 77, MTU: 1500, Up: true, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 7}, Addrs: []netip.Prefix{own}}

	if _, _, err := Apply(conf); err == nil || !strings.Contains(err.Error(), "antrea-gw0") {
		t.Errorf("no adapter: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*fakehns.Adapter)
		want   string // "": it is well
	}{
		"as it has to be":     {func(*fakehns.Adapter) {}, ""},
		"one address more":    {func(a *fakehns.Adapter) { a.Addrs = []netip.Prefix{other, own} }, ""},
		"another address":     {func(a *fakehns.Adapter) { a.Addrs = []netip.Prefix{other} }, "10.10.0.1/24"},
		"no address":          {func(a *fakehns.Adapter) { a.Addrs = nil }, "10.10.0.1/24"},
		"MTU":                 {func(a *fakehns.Adapter) { a.MTU = 1400 }, "1400"},
		"down":                {func(a *fakehns.Adapter) { a.Up = false }, "down"},
		"another compartment": {func(a *fakehns.Adapter) { a.Compartment = 2 }, "no such network interface"},
	} {
		t.Run(name, func(t *testing.T) {
			a := well
			c.change(&a)
			s.SetAdapter(a)
			state, changed, err := Apply(conf)
			if len(changed) > 0 {
				t.Errorf("changed %v", changed)
			}
			if c.want == "" {
				if err != nil || state.MAC.String() != "02:00:00:00:00:07" || !state.Up {
					t.Errorf("%+v, %v", state, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "docs/windows.md") {
				t.Errorf("%v", err)
			}
		})
	}
}
