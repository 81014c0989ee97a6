package podnettest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// World is a node in memory. Its parts outlive a Network, as the real ones
// outlive an agent: NewNetwork again is a restart.
type World struct {
	Bridge    *Bridge
	Flows     *Flows
	Linker    *Linker
	Addresses *Addresses

	mu     sync.Mutex
	events []podnet.Event
	broken []string
}

// NewWorld returns a node without interfaces. It watches the rule that a number
// is never freed while flows stand on it; see Broken.
func NewWorld() *World {
	w := &World{
		Bridge:    NewBridge(),
		Flows:     NewFlows(),
		Linker:    NewLinker(),
		Addresses: NewAddresses(netip.MustParsePrefix("10.10.0.0/16")),
	}
	w.Bridge.Freed = func(name string, ofport int32) {
		if keys := w.Flows.On(uint32(ofport)); ofport > 0 && len(keys) > 0 {
			w.breach(fmt.Sprintf("OpenFlow port %d of %s was freed while flows of %v stand on it", ofport, name, keys))
		}
	}
	return w
}

// Config returns a Config of the world's parts with a readiness backend that
// waits in Begin.
func (w *World) Config() podnet.Config {
	return podnet.Config{
		Linker:    w.Linker,
		Readiness: NewWaitingReadiness(w.Bridge),
		Bridge:    w.Bridge,
		Flows:     w.Flows,
		Addresses: w.Addresses,
		Events:    w,
	}
}

// AsyncConfig is Config with an asynchronous readiness backend.
func (w *World) AsyncConfig(tb testing.TB, cfg async.Config) podnet.Config {
	tb.Helper()
	readiness, err := NewAsyncReadiness(w.Bridge, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	c := w.Config()
	c.Readiness = readiness
	return c
}

// Start makes a Network and runs it until stop is called.
func Start(tb testing.TB, cfg podnet.Config) (n *podnet.Network, stop func()) {
	tb.Helper()
	n, err := podnet.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return n, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Network.Run: %v", err)
		}
	})
}

// NewRequest returns a Request for an interface eth0 of a Pod of its own.
func NewRequest(containerID string) podnet.Request {
	return podnet.Request{
		Key:   ifstore.Key{ContainerID: containerID, IfName: "eth0"},
		Pod:   ifstore.Pod{Namespace: "default", Name: "pod-" + containerID, UID: "uid-" + containerID},
		NetNS: "/run/netns/" + containerID,
	}
}

// Event implements podnet.Events.
func (w *World) Event(_ context.Context, e podnet.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// Events returns the events so far.
func (w *World) Events() []podnet.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func (w *World) breach(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, text)
}

// Broken returns the violations seen so far.
func (w *World) Broken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.broken)
}

// Leftovers names everything that exists in the world.
func (w *World) Leftovers() []string {
	var left []string
	for _, name := range w.Bridge.Names() {
		left = append(left, "port "+name)
	}
	for _, name := range w.Linker.Names() {
		left = append(left, "link "+name)
	}
	for _, key := range w.Addresses.Leases() {
		left = append(left, "address of "+key)
	}
	if n := w.Flows.Len(); n > 0 {
		left = append(left, fmt.Sprintf("flows of %d interfaces", n))
	}
	return append(left, w.Broken()...)
}
