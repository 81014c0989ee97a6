package async

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/antrea-lite/podnet/podnet"
)

// Watch reports names of ports whose state changed. *ofclient.PortWatch and
// vswitch's watch of numbers implement it. Next waits for at least one name.
type Watch interface {
	Next(ctx context.Context) (names []string, err error)
}

// PortState is what the OpenFlow session last heard about a port.
type PortState struct {
	Number uint32
	Live   bool // OFPPS_LIVE
}

// Accept says when the first flows of a promised port may go in.
type Accept int

const (
	// AcceptNumber: as soon as OVSDB has a valid number; OpenFlow's port state is not looked at.
	AcceptNumber Accept = iota
	// AcceptListed: the OpenFlow session must list the port, whatever its state bits. For Windows, where they are wrong (ovs-issues#351).
	AcceptListed
	// AcceptLive: the port must be listed with the LIVE bit. For devices on Linux that others make later.
	AcceptLive
)

// Config configures a Readiness.
type Config struct {
	// Accept is the rule for a promised port's first flows. Later number
	// changes are passed on at once: losing LIVE withdraws nothing.
	Accept Accept
	// Ports returns the latest state in the OpenFlow session. Needed unless Accept is AcceptNumber.
	Ports func(name string) (PortState, bool)
	// Watches report names, promised or not. They belong to Readiness while Run runs.
	Watches []Watch
	// Prepare, if set, is a step that every promised port needs before it can
	// get a number (on Windows: the host interface appears and the row's type
	// is switched). It is called for all that wait at once, must be idempotent
	// and gives one result per key; an error is the cause that Late reports.
	// Once it has succeeded for a port it is called for that port again only when Open
	// vSwitch cannot open its device, from then on until it succeeds, when the port is
	// down or, under AcceptListed, when the session does not list it.
	Prepare func(ctx context.Context, keys []podnet.PortKey) []error
	// OFPort, if set, tells what OVSDB says of a port that the rule refuses:
	// OFPort of podnet.Bridge. Its error is the better cause, and nudges depend on it,
	// because a port in error is never listed.
	OFPort func(ctx context.Context, key podnet.PortKey) (uint32, error)
	// Nudge, if set, makes Open vSwitch try again to open a port's device. It is
	// called for ports that are in error (*podnet.PortError) although Prepare
	// finds nothing missing. Gen is empty in the key of a port that was not promised.
	Nudge func(ctx context.Context, key podnet.PortKey) error
	// NudgeMin is how long an error must stand before the first nudge, and the
	// pause before the second; the pause doubles up to NudgeMax. 0: 1 s, 1 min.
	NudgeMin, NudgeMax time.Duration
	// StepTimeout bounds one call of Prepare, and the nudges of one batch. 0: 10 s.
	StepTimeout time.Duration
	// NotReadyAfter is the time from Begin until the sink hears that a port is late. 0: 30 s.
	NotReadyAfter time.Duration
	// Queue holds the delays between attempts.
	Queue QueueConfig
}

// Readiness is an asynchronous podnet.PortReadiness. All methods may be called
// concurrently.
type Readiness struct {
	cfg   Config
	queue *Queue
	steps chan struct{} // taken for Prepare and Nudge: one worker always stays free of what may hang

	// The queue holds names only, so that no two workers have one port; what a
	// name stands for is found when its turn comes.
	mu       sync.Mutex
	promises map[string]*promise // by port name
	reported map[string]struct{} // names without a promise that are in the queue
	nudges   map[string]*nudging // by port name
}

// promise is what Begin owes.
type promise struct {
	key      podnet.PortKey
	begun    time.Time
	prepared bool  // Config.Prepare has succeeded
	cause    error // of the latest failed attempt
}

// New returns a Readiness that starts nothing before Run.
func New(cfg Config) (*Readiness, error) {
	if cfg.Accept != AcceptNumber && cfg.Ports == nil {
		return nil, errors.New("async: Config.Ports is needed to accept ports by what the switch lists")
	}
	setDefault(&cfg.NotReadyAfter, 30*time.Second)
	setDefault(&cfg.StepTimeout, 10*time.Second)
	setDefault(&cfg.NudgeMin, time.Second)
	setDefault(&cfg.NudgeMax, time.Minute)
	return &Readiness{
		cfg: cfg, queue: NewQueue(cfg.Queue), steps: make(chan struct{}, max(1, cfg.Queue.withDefaults().Workers-1)),
		promises: make(map[string]*promise), reported: make(map[string]struct{}), nudges: make(map[string]*nudging),
	}, nil
}

// Begin promises to call the sink for key and returns at once, never ok.
func (r *Readiness) Begin(ctx context.Context, key podnet.PortKey) (ofport uint32, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	r.Resume([]podnet.PortKey{key})
	return 0, false, nil
}

// Resume takes up promises of an earlier process.
func (r *Readiness) Resume(keys []podnet.PortKey) {
	r.mu.Lock()
	now := time.Now()
	for _, key := range keys {
		r.promises[key.Name] = &promise{key: key, begun: now}
		delete(r.nudges, key.Name)
	}
	r.mu.Unlock()
	for _, key := range keys {
		r.queue.Add(podnet.PortKey{Name: key.Name})
	}
}

// Cancel withdraws the promise for that life of the port.
func (r *Readiness) Cancel(key podnet.PortKey) {
	r.mu.Lock()
	if p := r.promises[key.Name]; p != nil && p.key == key {
		delete(r.promises, key.Name)
		delete(r.nudges, key.Name)
	}
	r.mu.Unlock()
	r.queue.Forget(podnet.PortKey{Name: key.Name})
}

// Waiting returns the number of promises not yet kept.
func (r *Readiness) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.promises)
}

// Run reads the watches and calls sink until ctx ends (nil), or until a watch fails.
func (r *Readiness) Run(ctx context.Context, sink podnet.PortSink) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, watch := range r.cfg.Watches {
		group.Go(func() error { return r.read(ctx, watch) })
	}
	group.Go(func() error {
		return r.queue.Run(ctx, func(ctx context.Context, keys []podnet.PortKey) []error { return r.look(ctx, sink, keys) })
	})
	return group.Wait()
}

// read queues every reported name, as whatever life it has now.
func (r *Readiness) read(ctx context.Context, watch Watch) error {
	for {
		names, err := watch.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch of ports ended: %w", err)
		}
		r.mu.Lock()
		for _, name := range names {
			r.reported[name] = struct{}{}
		}
		r.mu.Unlock()
		for _, name := range names {
			r.queue.Add(podnet.PortKey{Name: name})
		}
	}
}
