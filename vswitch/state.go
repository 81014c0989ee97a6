package vswitch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// portState is what a Watch reports about: it names the port when any of it changes.
type portState struct {
	gen, typ, err string
	ofport        int
}

// connected makes a session with complete tables the current one. It runs on
// the session's reader.
func (c *Client) connected(s *session, t *tables) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables != nil {
		c.status.Reconnects++
	}
	c.session, c.tables = s, t
	c.status.Connected, c.status.Since = true, time.Now()
	names := map[string]struct{}{}
	for name := range c.seen {
		names[name] = struct{}{}
	}
	for name := range t.byName {
		names[name] = struct{}{}
	}
	c.tell(names)
	for _, ws := range c.waiters {
		for w := range ws {
			w.wake()
		}
	}
	c.cfg.Observer.Connected(true)
}

// disconnected ends the session's time as the current one. Reads wait from here on.
func (c *Client) disconnected(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != s {
		return
	}
	c.session = nil
	c.status.Connected, c.status.Since = false, time.Now()
	c.cfg.Observer.Connected(false)
}

// updated applies an update and wakes whom it concerns. It runs on the reader,
// which must never wait: waking is a flag, never a call.
func (c *Client) updated(s *session, raw json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != s {
		return nil
	}
	ch, err := c.tables.apply(raw)
	if err != nil {
		return err // the connection ends and the next dump puts it right
	}
	c.tell(ch.names)
	for _, uuid := range ch.uuids {
		for w := range c.waiters[uuid] {
			w.wake()
		}
	}
	return nil
}

// tell adds to every watch those of names whose state on our bridge differs
// from what was told before.
func (c *Client) tell(names map[string]struct{}) {
	var changed []string
	for name := range names {
		now, here := c.stateOf(name)
		before, was := c.seen[name]
		switch {
		case here:
			c.seen[name] = now
		case was:
			delete(c.seen, name)
		}
		if here != was || now != before {
			changed = append(changed, name)
		}
	}
	for w := range c.watches {
		w.add(changed)
	}
}

func (c *Client) stateOf(name string) (portState, bool) {
	gen, ok := c.tables.byName[name]
	if !ok {
		return portState{}, false
	}
	f, ok := c.tables.byGen(gen)
	if !ok || f.bridge == nil || f.bridge.Name != c.cfg.Bridge {
		return portState{}, false
	}
	return portState{gen: gen, typ: f.iface.Type, err: value(f.iface.Error), ofport: value(f.iface.OFPort)}, true
}

// waiter is a level: a wake while it is already awake is the same wake.
type waiter struct{ ch chan struct{} }

func newWaiter() *waiter { return &waiter{make(chan struct{}, 1)} }

func (w *waiter) wake() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// await calls cond with current tables until it is done or fails: at once, when
// the row of that UUID changes, and after every new connection. cond runs under
// the client's lock and must copy what it keeps.
func (c *Client) await(ctx context.Context, uuid string, cond func(*tables) (done bool, err error)) error {
	w := newWaiter()
	c.mu.Lock()
	if c.waiters[uuid] == nil {
		c.waiters[uuid] = map[*waiter]struct{}{}
	}
	c.waiters[uuid][w] = struct{}{}
	defer func() {
		delete(c.waiters[uuid], w)
		if len(c.waiters[uuid]) == 0 {
			delete(c.waiters, uuid)
		}
		c.mu.Unlock()
	}()
	for {
		if c.session != nil {
			if done, err := cond(c.tables); done || err != nil {
				return err
			}
		}
		c.mu.Unlock()
		var err error
		select {
		case <-w.ch:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-c.ended:
			err = errEnded
		}
		c.mu.Lock()
		if err != nil {
			return c.explain(err)
		}
	}
}

// explain adds to the end of a wait that OVSDB is away, when it is. Callers hold c.mu.
func (c *Client) explain(err error) error {
	if c.session != nil {
		return err
	}
	return fmt.Errorf("OVSDB at %s: %w (%s): %w", c.cfg.Endpoint, podnet.ErrNotConnected, c.lastError(), err)
}

func (c *Client) lastError() string {
	if c.status.LastError == "" {
		return "no connection yet"
	}
	return c.status.LastError
}

// ready waits for a current session.
func (c *Client) ready(ctx context.Context) (*session, error) {
	var s *session
	err := c.await(ctx, "", func(*tables) (bool, error) {
		s = c.session
		return true, nil
	})
	return s, err
}
