package ofclient

import (
	"context"
	"errors"
	"sync"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// errWatchClosed is returned by Next after Close.
var errWatchClosed = errors.New("port watch is closed")

// PortWatch tells which ports changed. It carries names, not events: a name
// that changes many times before it is read is told once, and Client.Port
// gives its latest state. So a slow reader costs memory for each port at most once
// and never delays the session.
type PortWatch struct {
	hub    *watchHub
	signal chan struct{} // capacity 1: names are waiting
	closed chan struct{}

	order []string // guarded by hub.mu
	dirty map[string]struct{}
}

// Next waits for changed names and returns all of them, in the order of their
// first change: added, changed and DELETED ports, all that a list found to
// differ, and every port, vanished ones included, when a new session is ready.
func (w *PortWatch) Next(ctx context.Context) ([]string, error) {
	for {
		select {
		case <-w.signal:
		case <-w.closed:
			return nil, errWatchClosed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if names := w.take(); len(names) > 0 {
			return names, nil
		}
	}
}

// take empties the watch; a closed one has nothing.
func (w *PortWatch) take() []string {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	names := w.order
	w.order, w.dirty = nil, make(map[string]struct{})
	if _, open := w.hub.watches[w]; !open {
		return nil
	}
	return names
}

// Close ends the watch; a waiting Next returns an error.
func (w *PortWatch) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if _, ok := w.hub.watches[w]; ok {
		delete(w.hub.watches, w)
		close(w.closed)
	}
}

// watchHub hands the port changes of the ready session to the watches.
type watchHub struct {
	mu        sync.Mutex
	watches   map[*PortWatch]struct{}
	live      *Conn               // the ready session; the others' changes are covered by its start
	known     map[string]struct{} // names that exist as far as the watches were told
	coalesced func(int)
}

func (h *watchHub) watch() *PortWatch {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &PortWatch{hub: h, signal: make(chan struct{}, 1), closed: make(chan struct{}), dirty: make(map[string]struct{})}
	h.watches[w] = struct{}{}
	if h.live != nil {
		h.tell(w, h.live.ports.names())
	}
	return w
}

// begin makes conn the live session and tells every port that it has and
// every one that an earlier session had.
func (h *watchHub) begin(conn *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = conn
	names := conn.ports.names()
	known := make(map[string]struct{}, len(names))
	for _, name := range names {
		known[name] = struct{}{}
		delete(h.known, name)
	}
	for name := range h.known {
		names = append(names, name)
	}
	h.known = known
	h.tellAll(names)
}

func (h *watchHub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = nil
}

// changed is called by conn's reader.
func (h *watchHub) changed(conn *Conn, names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if conn != h.live {
		return
	}
	for _, name := range names {
		if _, ok := conn.ports.byName(name); ok {
			h.known[name] = struct{}{}
		} else {
			delete(h.known, name)
		}
	}
	h.tellAll(names)
}

func (h *watchHub) tellAll(names []string) {
	for w := range h.watches {
		h.tell(w, names)
	}
}

func (h *watchHub) tell(w *PortWatch, names []string) {
	joined := 0
	for _, name := range names {
		if _, ok := w.dirty[name]; ok {
			joined++
			continue
		}
		w.dirty[name] = struct{}{}
		w.order = append(w.order, name)
	}
	if joined > 0 {
		h.coalesced(joined)
	}
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// WatchPorts starts a watch. It begins with every port of the present session,
// if there is one. Close it when done.
func (c *Client) WatchPorts() *PortWatch { return c.hub.watch() }

// Port returns the latest state of a port in the present session, from memory.
// It is false when the port does not exist or no session has listed the ports.
func (c *Client) Port(name string) (ofp.PortDesc, bool) {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn == nil {
		return ofp.PortDesc{}, false
	}
	return conn.ports.byName(name)
}
