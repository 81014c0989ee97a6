package windows

import (
	"context"
	"errors"
	"time"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

const (
	// typeSwitched is the type of a port whose vNIC is there. Until then it is "",
	// which is how a restarted process knows what is left to do.
	typeSwitched = "internal"

	defaultTick       = 500 * time.Millisecond
	defaultNudgeAfter = 5 * time.Second
	defaultNudgeMax   = time.Minute

	// diagnosePeriod is how often HNS is asked about endpoints whose vNIC is missing.
	diagnosePeriod = 10 * time.Second
	// maxRetry is the longest pause of async's queue between two looks at a port,
	// when its configuration says nothing else.
	maxRetry = 5 * time.Second
)

// Rows are the rows of ports in OVSDB; *vswitch.Client implements it.
type Rows interface {
	// Ports lists every port of the bridge, from a complete and current view.
	Ports(ctx context.Context) ([]podnet.Port, error)
	// SetType sets Interface.type of that life of the port; nothing is written
	// when it is equal. Gone, or another life: podnet.ErrNoPort.
	SetType(ctx context.Context, key podnet.PortKey, typ string) error
}

// ReadinessConfig configures NewReadiness.
type ReadinessConfig struct {
	Rows Rows // required
	// Adapters lists the host's interfaces in all compartments (hostif.List). Required.
	Adapters func(ctx context.Context) ([]hostif.Adapter, error)
	// Listed returns what the OpenFlow session last heard about the port of that name. Required.
	Listed func(name string) (async.PortState, bool)
	// Watches report names of ports that changed: the row in OVSDB
	// (vswitch.Client.WatchOFPorts) and the port in OpenFlow, both; they belong to
	// the Readiness while it runs. What is not reported is found at the next retry.
	Watches []async.Watch
	// LateSteps run in this order for every port whose vNIC has appeared, before
	// its type is switched.
	LateSteps []LateStep
	// Endpoints lists the endpoints of HNS with their states, until ctx ends at
	// the latest. nil: the cause of a wait for a vNIC says nothing about its endpoint.
	Endpoints func(ctx context.Context) ([]Endpoint, error)

	// Tick is the pause between two listings of the host's interfaces while at
	// least one Pod waits for its vNIC, however many do. 0: 500 ms.
	Tick time.Duration
	// NudgeAfter is how long a port may be in error, its vNIC being there, before
	// its type is set to "" and back; every further time twice that passes, up to
	// NudgeMax. 0: 5 s and 1 min.
	NudgeAfter, NudgeMax time.Duration
	// NotReadyAfter is the time from Begin until the sink hears that a port is late. 0: 30 s.
	NotReadyAfter time.Duration
	// Queue holds the delays between attempts.
	Queue async.QueueConfig
}

// NewReadiness returns the readiness backend of Windows. Begin promises. A
// promised port then waits, without limit,
//
//   - for its vNIC, the host interface "vEthernet (PORT)", which Windows makes
//     when the container starts, after ADD has returned;
//   - for the late steps that need the vNIC;
//   - for its type to be switched from "" to "internal", upon which Open vSwitch
//     opens the vNIC. Opening may fail although all is well a moment later
//     (ovs-issues#343, #262), so a port in error is switched again, with back-off;
//   - for its number: the OpenFlow session lists it, whatever its state bits,
//     which are wrong on Windows (ovs-issues#351).
//
// Nothing of the wait but its beginning is remembered here: the row's type and
// number tell where it stands, and Resume takes it up after a restart.
func NewReadiness(cfg ReadinessConfig) (*async.Readiness, error) {
	if cfg.Rows == nil || cfg.Adapters == nil || cfg.Listed == nil {
		return nil, errors.New("windows: ReadinessConfig needs Rows, Adapters and Listed")
	}
	setDefault(&cfg.Tick, defaultTick)
	setDefault(&cfg.NudgeAfter, defaultNudgeAfter)
	setDefault(&cfg.NudgeMax, max(defaultNudgeMax, cfg.NudgeAfter))

	seen := &adapters{list: cfg.Adapters}
	here := async.NewAppearance(seen.names, cfg.Tick)
	waits := newVNICWaits(max(cfg.Queue.MaxRetry, maxRetry), cfg.NudgeAfter, cfg.NudgeMax)
	step := &vnicStep{cfg: cfg, seen: seen, here: here, waits: waits}
	watches := append([]async.Watch{&arrivals{here: here, waits: waits, tick: cfg.Tick}}, cfg.Watches...)
	if cfg.Endpoints != nil {
		watches = append(watches, &diagnosis{endpoints: cfg.Endpoints, waits: waits})
	}
	return async.New(async.Config{
		Accept: async.AcceptListed, Ports: cfg.Listed, Watches: watches, Prepare: step.prepare,
		// A port that was ready and lost its number comes to prepare as a port to be
		// nudged, and there it is: see vnicStep.nudge.
		Nudge:         func(context.Context, podnet.PortKey) error { return nil },
		NotReadyAfter: cfg.NotReadyAfter, Queue: cfg.Queue,
	})
}

func setDefault(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}
