package linux

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// PortWaiter waits for the number of a port; *vswitch.Client implements it.
type PortWaiter interface {
	// WaitOFPort returns the OpenFlow number of that life of the port as soon
	// as it is known. When ctx ends before, or Open vSwitch could not open the
	// device, the error says what was missing (a *podnet.PortError carries
	// Open vSwitch's own words).
	WaitOFPort(ctx context.Context, key podnet.PortKey) (uint32, error)
}

// ReadinessConfig configures a Readiness.
type ReadinessConfig struct {
	Ports PortWaiter
	// Watches tell which ports to look at again: the port watch of the OpenFlow
	// client, the one of the OVSDB client.
	Watches []async.Watch
	// Wait bounds one Begin; 0: its ctx alone does.
	Wait time.Duration
	// Describe says in words what the switch last told about a port ("" when
	// nothing), for the error of a Begin that waited in vain. May be nil.
	Describe func(name string) string
	// Queue holds the pauses after which a port whose Sync failed is tried again.
	Queue async.QueueConfig
}

// Readiness learns the OpenFlow numbers of ports whose devices exist before
// their rows do. It implements podnet.PortReadiness.
type Readiness struct {
	cfg   ReadinessConfig
	queue *async.Queue

	mu    sync.Mutex
	begun map[string]string // Gen of the latest Begin, by port name
}

var _ podnet.PortReadiness = (*Readiness)(nil)

// NewReadiness returns a Readiness; Ports must be set.
func NewReadiness(cfg ReadinessConfig) *Readiness {
	return &Readiness{cfg: cfg, queue: async.NewQueue(cfg.Queue), begun: make(map[string]string)}
}

// Begin waits until the port has its number. It never promises to answer
// later: ok is true when err is nil. When the wait ends in vain the error says
// how long it was, what was seen last and what Open vSwitch says.
func (r *Readiness) Begin(ctx context.Context, key podnet.PortKey) (ofport uint32, ok bool, err error) {
	r.mu.Lock()
	r.begun[key.Name] = key.Gen
	r.mu.Unlock()

	start := time.Now()
	waitCtx, cancel := ctx, context.CancelFunc(func() {})
	if r.cfg.Wait > 0 {
		waitCtx, cancel = context.WithTimeoutCause(ctx, r.cfg.Wait, fmt.Errorf("the configured wait of %v is over: %w", r.cfg.Wait, context.DeadlineExceeded))
	}
	defer cancel()
	ofport, err = r.cfg.Ports.WaitOFPort(waitCtx, key)
	if err == nil {
		return ofport, true, nil
	}
	r.Cancel(key)
	return 0, false, r.explain(key, time.Since(start), err)
}

// explain says why a port has no number, in one line: how long the wait was,
// what ended it, what was seen last and what to do.
func (r *Readiness) explain(key podnet.PortKey, waited time.Duration, err error) error {
	seen := "the switch has told nothing of the port"
	if r.cfg.Describe != nil {
		if s := r.cfg.Describe(key.Name); s != "" {
			seen = "the switch last told: " + s
		}
	}
	remedy := ""
	if port := (*podnet.PortError)(nil); errors.As(err, &port) {
		remedy = "; Open vSwitch cannot use the device: see whether it is still there, and ovs-vswitchd's log"
	}
	return fmt.Errorf("no OpenFlow number for port %s after %v: %w; %s%s", key.Name, waited.Round(time.Millisecond), err, seen, remedy)
}

// Cancel forgets that life of the port.
func (r *Readiness) Cancel(key podnet.PortKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun[key.Name] == key.Gen {
		delete(r.begun, key.Name)
	}
}
