package vswitch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

var (
	errEnded       = errors.New("the OVSDB client has ended")
	errWatchClosed = errors.New("watch is closed")
)

// Watch reports the names of ports of the bridge whose number, error, type or
// row changed. It holds each name once, however often it changed, so a slow
// reader costs nothing and loses nothing but steps in between: look at the
// port for its latest state.
type Watch struct {
	client *Client
	waiter *waiter
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	names map[string]struct{}
}

// WatchOFPorts starts a watch. It reports what changes from now on, including
// what turns out to have changed while OVSDB was away; list the ports after it
// was started. Close it when done.
func (c *Client) WatchOFPorts() *Watch {
	w := &Watch{client: c, waiter: newWaiter(), closed: make(chan struct{}), names: map[string]struct{}{}}
	c.mu.Lock()
	c.watches[w] = struct{}{}
	c.mu.Unlock()
	return w
}

func (w *Watch) add(names []string) {
	if len(names) == 0 {
		return
	}
	w.mu.Lock()
	for _, n := range names {
		w.names[n] = struct{}{}
	}
	w.mu.Unlock()
	w.waiter.wake()
}

// Next waits until something changed and returns the names, sorted. One
// goroutine at a time may call it.
func (w *Watch) Next(ctx context.Context) ([]string, error) {
	for {
		if names := w.take(); len(names) > 0 {
			return names, nil
		}
		select {
		case <-w.waiter.ch:
		case <-w.closed:
			return nil, errWatchClosed
		case <-w.client.ended:
			return nil, errEnded
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (w *Watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := slices.Sorted(maps.Keys(w.names))
	clear(w.names)
	return names
}

// Close ends the watch and wakes its reader.
func (w *Watch) Close() {
	w.once.Do(func() {
		w.client.mu.Lock()
		delete(w.client.watches, w)
		w.client.mu.Unlock()
		close(w.closed)
	})
}
