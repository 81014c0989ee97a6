package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/sim"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Parts that do not do what they say must be noticed, each by its own rule.
func TestModelNotices(t *testing.T) {
	for name, change := range map[string]func(*podnet.Config){
		"flows that stay":       func(c *podnet.Config) { c.Flows = sticky{c.Flows} },
		"flows that never go":   func(c *podnet.Config) { c.Flows = idle{c.Flows} },
		"a row of another life": func(c *podnet.Config) { c.Bridge = forgetful{c.Bridge} },
		"nobody is told":        func(c *podnet.Config) { c.Events = nil },
		"told too early":        func(c *podnet.Config) { c.NotReadyAfter = 20 * time.Second },
		"told again and again":  func(c *podnet.Config) { c.NotReadyRepeat = time.Second; c.Events = echo{c.Events} },
		"leases that stay":      func(c *podnet.Config) { c.Addresses = generous{c.Addresses} },
		"cables that stay":      func(c *podnet.Config) { c.Linker = lazy{c.Linker} },
		"numbers that are late": func(c *podnet.Config) { c.Readiness = deaf{c.Readiness}; c.RetryInterval = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 300
			for seed := range uint64(most) {
				if r := sim.RunWith(t, sim.Generate(seed+1), change); len(r.Broken) > 0 {
					t.Logf("noticed with seed %d: %s", seed+1, r.Broken[0])
					return
				}
			}
			t.Errorf("not noticed in %d schedules", most)
		})
	}
}

type sticky struct{ podnet.Flows }

func (sticky) Uninstall(_ context.Context, ifaces []ifstore.Interface) []error {
	return make([]error, len(ifaces))
}

type idle struct{ podnet.Flows }

func (idle) Install(_ context.Context, ifaces []ifstore.Interface) []error {
	return make([]error, len(ifaces))
}

// forgetful does not compare lives.
type forgetful struct{ podnet.Bridge }

func (f forgetful) OFPort(ctx context.Context, key podnet.PortKey) (uint32, error) {
	key.Gen = ""
	return f.Bridge.OFPort(ctx, key)
}

type echo struct{ podnet.Events }

func (e echo) Event(ctx context.Context, event podnet.Event) {
	e.Events.Event(ctx, event)
	e.Events.Event(ctx, event)
}

type generous struct{ podnet.Addresses }

func (generous) Release(context.Context, ifstore.Key) error { return nil }

type lazy struct{ podnet.Linker }

func (lazy) Unlink(context.Context, ifstore.Interface) error { return nil }

// deaf never hears of a change.
type deaf struct{ podnet.PortReadiness }

func (deaf) Run(ctx context.Context, _ podnet.PortSink) error { <-ctx.Done(); return nil }
