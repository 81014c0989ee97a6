package podnet

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// PortTable tells what the OpenFlow session last heard about a port.
type PortTable interface {
	// PortState returns the number of the port of that name in the present
	// session; not ok when the session does not list it or there is none.
	PortState(name string) (number uint32, ok bool)
}

// Config is what a Network is made of.
type Config struct {
	Linker    Linker        // required
	Readiness PortReadiness // required
	Bridge    Bridge        // required
	Flows     Flows         // required

	Addresses Addresses      // nil: addresses come with the Request
	Store     *ifstore.Store // nil: a new one
	Ports     PortTable      // nil: OVSDB alone says which number a port has

	// Owner marks the ports of this agent in external_ids (podnet-owner).
	// Ports with another value, or none, are never touched. "": "podnet".
	Owner string

	Events   Events // nil: nobody is told
	Observer Observer

	NotReadyAfter  time.Duration // how long an interface may wait before its Pod is told; 0: 30 s
	NotReadyRepeat time.Duration // the least time between two such events of one wait, when the cause changes; 0: 5 min
	RetryInterval  time.Duration // how often Run looks at interfaces that wait and that no Begin promised; 0: 5 s
	SweepInterval  time.Duration // how often Run looks for interfaces whose container is gone; two observations count; 0: 1 min
	UndoTimeout    time.Duration // for taking back a failed Add before that goes on in the background; 0: 20 s
	RemoveTimeout  time.Duration // for one attempt of a removal in the background; 0: 30 s
}

func (c Config) withDefaults() Config {
	if c.Store == nil {
		c.Store = ifstore.New()
	}
	if c.Owner == "" {
		c.Owner = "podnet"
	}
	for _, d := range []struct {
		field *time.Duration
		def   time.Duration
	}{
		{&c.NotReadyAfter, 30 * time.Second},
		{&c.NotReadyRepeat, 5 * time.Minute},
		{&c.RetryInterval, 5 * time.Second},
		{&c.SweepInterval, time.Minute},
		{&c.UndoTimeout, 20 * time.Second},
		{&c.RemoveTimeout, 30 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.def
		}
	}
	return c
}

// Network plugs containers into one bridge. All methods may be called
// concurrently. See the package documentation for the locks it takes.
type Network struct {
	cfg   Config
	store *ifstore.Store

	pods       *keyLocks[podName]
	containers *keyLocks[string]
	replay     *replayLock
	leases     *replayLock   // shared while Addresses allocates, alone while it sweeps
	starting   chan struct{} // holds the token of the one Reconcile that may run

	telling sync.Mutex // held while an event is decided on and handed over, so that events keep their order; before mu

	mu         sync.Mutex // guards the rest; a leaf, never held across a call to a part
	reconciled bool
	unreadable []ifstore.Key   // of ports with our mark that Reconcile could not read; their addresses are not free
	marred     map[string]bool // Gen of the ports that the last Reconcile could not read: told once
	replayed   bool
	newReplay  chan struct{} // closed and replaced after every replay
	adds       map[*adding]struct{}
	tracks     map[ifstore.Key]*track
	removals   map[ifstore.Key]*removal
	wakeRun    chan struct{} // one token: there are removals without a worker
}

type podName struct{ namespace, name string }

// New checks cfg and returns a Network that has done nothing yet. It starts no
// goroutine; see Run.
func New(cfg Config) (*Network, error) {
	for _, part := range []struct {
		name    string
		missing bool
	}{
		{"Linker", cfg.Linker == nil},
		{"Readiness", cfg.Readiness == nil},
		{"Bridge", cfg.Bridge == nil},
		{"Flows", cfg.Flows == nil},
	} {
		if part.missing {
			return nil, fmt.Errorf("podnet: Config.%s is nil; it is required", part.name)
		}
	}
	if len(cfg.Owner) > 255 {
		return nil, errors.New("podnet: Config.Owner is longer than 255 bytes")
	}
	cfg = cfg.withDefaults()
	n := &Network{
		cfg:        cfg,
		store:      cfg.Store,
		pods:       newKeyLocks[podName](),
		containers: newKeyLocks[string](),
		replay:     newReplayLock(),
		leases:     newReplayLock(),
		starting:   make(chan struct{}, 1),
		newReplay:  make(chan struct{}),
		adds:       make(map[*adding]struct{}),
		tracks:     make(map[ifstore.Key]*track),
		removals:   make(map[ifstore.Key]*removal),
		wakeRun:    make(chan struct{}, 1),
	}
	n.starting <- struct{}{}
	return n, nil
}

// Interfaces returns the record of every interface, by key.
func (n *Network) Interfaces() []ifstore.Interface { return n.store.List() }

// Waiting returns how many interfaces wait for their port or flows.
func (n *Network) Waiting() int {
	waiting := 0
	for _, i := range n.store.List() {
		if i.State == ifstore.StateWaiting {
			waiting++
		}
	}
	return waiting
}

func portKey(i ifstore.Interface) PortKey { return PortKey{Name: i.Name, Gen: i.Gen} }
