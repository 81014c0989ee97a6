package vswitchtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

// Message is one JSON-RPC message on its way through a Proxy. A Rule may change it.
type Message struct {
	ToServer bool   `json:"-"`
	Request  string `json:"-"` // of a request or notification its method; of an answer that of its request
	Conn     int    `json:"-"` // which connection, counted from 1

	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// IsAnswer reports whether m answers a request.
func (m *Message) IsAnswer() bool { return m.Method == "" }

// Verdict is what a Proxy does with a message.
type Verdict int

const (
	Forward    Verdict = iota
	Drop               // lose the message
	Hold               // keep it until Release; later messages overtake it
	Break              // close the connection in place of forwarding
	BreakAfter         // forward, then close the connection
	HalfClose          // forward, then send no more in this direction but take what comes
)

// Rule judges every message. It may be called from several goroutines at once;
// blocking in it delays its direction of that connection.
type Rule func(m *Message) Verdict

// Proxy relays JSON-RPC between OVSDB clients and an ovsdb-server, and does to
// it what networks and servers do.
type Proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	rule   Rule
	hole   bool
	refuse bool
	closed bool
	held   []func()
	hold   chan struct{} // closed and replaced when something is held
	links  map[net.Conn]struct{}
	count  int
}

// StartProxy relays from the unix socket listen to the unix socket target until the test ends.
func StartProxy(tb testing.TB, listen, target string) *Proxy {
	tb.Helper()
	os.Remove(listen)
	l, err := net.Listen("unix", listen)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{target: target, listener: l, links: map[net.Conn]struct{}{}, hold: make(chan struct{})}
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		l.Close()
		p.BreakAll()
		p.wg.Wait()
	})
	return p
}

// Endpoint is where clients connect, in OVSDB's notation.
func (p *Proxy) Endpoint() string { return "unix:" + p.listener.Addr().String() }

// SetRule replaces the rule; nil forwards everything.
func (p *Proxy) SetRule(r Rule) { p.mu.Lock(); defer p.mu.Unlock(); p.rule = r }

// BlackHole makes every message vanish, connections stay open.
func (p *Proxy) BlackHole(on bool) { p.mu.Lock(); defer p.mu.Unlock(); p.hole = on }

// Refuse closes new connections at once.
func (p *Proxy) Refuse(on bool) { p.mu.Lock(); defer p.mu.Unlock(); p.refuse = on }

// Conns is how many connections were accepted so far.
func (p *Proxy) Conns() int { p.mu.Lock(); defer p.mu.Unlock(); return p.count }

// Open is how many sockets are open now: two per connection.
func (p *Proxy) Open() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.links) }

// AwaitHeld waits until at least n messages are held.
func (p *Proxy) AwaitHeld(ctx context.Context, n int) error {
	for {
		p.mu.Lock()
		have, more := len(p.held), p.hold
		p.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%d messages held, want %d: %w", have, n, context.Cause(ctx))
		}
	}
}

// Release forwards what was held, in order.
func (p *Proxy) Release() {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, send := range held {
		send()
	}
}

// BreakAll closes every connection.
func (p *Proxy) BreakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.links {
		c.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.mu.Lock()
		p.count++
		n, refuse := p.count, p.refuse || p.closed
		p.mu.Unlock()
		if refuse {
			client.Close()
			continue
		}
		server, err := net.Dial("unix", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.links[client], p.links[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		methods := &sync.Map{}
		p.wg.Go(func() { p.relay(n, true, client, server, methods) })
		p.wg.Go(func() { p.relay(n, false, server, client, methods) })
	}
}

// relay moves messages one way until either side closes.
func (p *Proxy) relay(conn int, toServer bool, from, to net.Conn, methods *sync.Map) {
	var write sync.Mutex
	mute := false
	dec := json.NewDecoder(from)
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		delete(p.links, from)
		delete(p.links, to)
		p.mu.Unlock()
	}()
	for {
		m := &Message{ToServer: toServer, Conn: conn}
		if dec.Decode(m) != nil {
			return
		}
		if id := string(m.ID); m.IsAnswer() {
			if method, ok := methods.Load(id); ok && !toServer {
				m.Request = method.(string)
			}
		} else {
			m.Request = m.Method
			if toServer {
				methods.Store(id, m.Method)
			}
		}
		p.mu.Lock()
		rule, hole := p.rule, p.hole
		p.mu.Unlock()
		verdict := Forward
		if rule != nil {
			verdict = rule(m)
		}
		if hole || mute {
			verdict = Drop
		}
		send := func() {
			write.Lock()
			defer write.Unlock()
			b, err := json.Marshal(m.wire())
			if err == nil {
				to.Write(b)
			}
		}
		switch verdict {
		case Forward:
			send()
		case Hold:
			p.mu.Lock()
			p.held = append(p.held, send)
			close(p.hold)
			p.hold = make(chan struct{})
			p.mu.Unlock()
		case Break:
			return
		case BreakAfter:
			send()
			return
		case HalfClose:
			send()
			mute = true
			if u, ok := to.(*net.UnixConn); ok {
				u.CloseWrite()
			}
		}
	}
}

// wire gives the members that JSON-RPC 1.0 wants in a request or an answer.
func (m *Message) wire() any {
	if m.IsAnswer() {
		return map[string]any{"id": m.ID, "result": orNull(m.Result), "error": orNull(m.Error)}
	}
	return map[string]any{"id": orNull(m.ID), "method": m.Method, "params": m.Params}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
