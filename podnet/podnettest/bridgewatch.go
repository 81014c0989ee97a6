package podnettest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/antrea-lite/podnet/podnet"
)

// WaitOFPort waits until that life of the port has a number. As with
// *vswitch.Client, a port in error or one that is gone ends the wait.
func (b *Bridge) WaitOFPort(ctx context.Context, key podnet.PortKey) (uint32, error) {
	for {
		if err := b.connection(ctx); err != nil {
			return 0, err
		}
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		ofport, err := b.ofport(key)
		if err == nil || !errors.Is(err, podnet.ErrNoNumber) {
			return ofport, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// Watch reports names of ports that change, from all present ports on.
func (b *Bridge) Watch() *NameWatch {
	w := &NameWatch{bridge: b, signal: make(chan struct{}, 1), names: make(map[string]struct{})}
	b.mu.Lock()
	names := slices.Collect(maps.Keys(b.ports))
	b.watches[w] = struct{}{}
	b.mu.Unlock()
	w.add(names)
	return w
}

func (b *Bridge) report(names ...string) {
	b.mu.Lock()
	close(b.changed)
	b.changed = make(chan struct{})
	watches := slices.Collect(maps.Keys(b.watches))
	b.mu.Unlock()
	for _, w := range watches {
		w.add(names)
	}
}

// NameWatch is a coalesced list of names; an async.Watch.
type NameWatch struct {
	bridge *Bridge // nil: nothing holds the names back
	signal chan struct{}
	mu     sync.Mutex
	names  map[string]struct{}
}

func (w *NameWatch) add(names []string) {
	w.mu.Lock()
	for _, name := range names {
		w.names[name] = struct{}{}
	}
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// Next waits for at least one name.
func (w *NameWatch) Next(ctx context.Context) ([]string, error) {
	for {
		if w.bridge != nil && w.bridge.connection(ctx) != nil {
			return nil, ctx.Err()
		}
		w.mu.Lock()
		names := slices.Sorted(maps.Keys(w.names))
		clear(w.names)
		w.mu.Unlock()
		if len(names) > 0 {
			return names, nil
		}
		select {
		case <-w.signal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
