package vswitch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// queued is how many messages may wait for the writer. Callers beyond wait in
// call with their context; echo replies beyond close the connection.
const queued = 64

// rpc speaks JSON-RPC 1.0 as RFC 7047 (section 4) uses it, both ways, over one
// connection. The reader handles messages strictly in the order of the wire.
type rpc struct {
	conn   net.Conn
	probe  time.Duration
	notify func(method string, params json.RawMessage) error // on the reader; an error ends the connection
	gone   func()                                            // before any call learns that the connection is lost

	out     chan []byte
	heard   atomic.Int64  // when something last arrived, as time since start
	start   time.Time     // monotonic origin of heard
	stopped chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	last    uint64
	pending map[uint64]pendingCall
	cause   error // why the connection was closed, when we closed it
}

type pendingCall struct {
	onReply func(json.RawMessage) error // on the reader, before any later message; nil: none
	reply   chan rpcReply
}

type rpcReply struct {
	result json.RawMessage
	err    error
}

func newRPC(conn net.Conn, probe time.Duration) *rpc {
	return &rpc{
		conn: conn, probe: probe,
		out: make(chan []byte, queued), stopped: make(chan struct{}),
		pending: make(map[uint64]pendingCall), start: time.Now(),
	}
}

// run serves the connection until it breaks or ctx ends, and returns why. All
// its goroutines have ended when it returns.
func (r *rpc) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { r.close(context.Cause(ctx)) })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(r.write)
	wg.Go(r.watch)
	err := r.read()
	r.close(err)
	r.gone()
	close(r.stopped)
	wg.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	for id, call := range r.pending {
		delete(r.pending, id)
		call.reply <- rpcReply{err: r.lost()}
	}
	return r.cause
}

// close ends the connection. It takes no lock that is ever held across I/O, so
// it works whatever the reader and the writer are stuck in.
func (r *rpc) close(cause error) {
	r.mu.Lock()
	if r.cause == nil {
		r.cause = cause
	}
	r.mu.Unlock()
	if tcp, ok := r.conn.(*net.TCPConn); ok {
		// What the kernel has not sent yet must not arrive after we have
		// reconnected and looked what was applied.
		tcp.SetLinger(0)
	}
	r.conn.Close()
}

// lost is the error of a call whose answer will not come. Callers hold r.mu.
func (r *rpc) lost() error {
	return fmt.Errorf("connection to OVSDB lost (%v): %w", r.cause, podnet.ErrOutcomeUnknown)
}

// call sends a request and returns its result. An error that wraps
// podnet.ErrNotConnected means that nothing was sent; podnet.ErrOutcomeUnknown
// that it was, and no answer came.
func (r *rpc) call(ctx context.Context, method string, params any, onReply func(json.RawMessage) error) (json.RawMessage, error) {
	r.mu.Lock()
	r.last++
	id := r.last
	r.mu.Unlock()
	b, err := json.Marshal(map[string]any{"method": method, "params": params, "id": id})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	call := pendingCall{onReply: onReply, reply: make(chan rpcReply, 1)}
	r.mu.Lock()
	if r.cause != nil {
		defer r.mu.Unlock()
		return nil, fmt.Errorf("%s: %w (%v)", method, podnet.ErrNotConnected, r.cause)
	}
	r.pending[id] = call
	r.mu.Unlock()
	forget := func() {
		r.mu.Lock()
		delete(r.pending, id)
		r.mu.Unlock()
	}
	select {
	case r.out <- b:
	case <-r.stopped:
		forget()
		return nil, fmt.Errorf("%s: %w", method, podnet.ErrNotConnected)
	case <-ctx.Done():
		forget()
		return nil, fmt.Errorf("%s: %w: %w", method, podnet.ErrNotConnected, context.Cause(ctx))
	}
	select {
	case reply := <-call.reply:
		var re *rpcError
		if errors.As(reply.err, &re) {
			re.method = method
		}
		return reply.result, reply.err
	case <-ctx.Done():
		forget()
		return nil, fmt.Errorf("%s: %w: %w", method, podnet.ErrOutcomeUnknown, context.Cause(ctx))
	}
}

func (r *rpc) write() {
	for {
		select {
		case b := <-r.out:
			if _, err := r.conn.Write(b); err != nil {
				r.close(err)
				return
			}
		case <-r.stopped:
			return
		}
	}
}

// watch closes a connection on which nothing arrived for two probe intervals,
// after it has asked for an echo at half time. It shares no lock with the
// reader, the writer or any caller that does I/O.
func (r *rpc) watch() {
	for {
		silent := time.Since(r.start) - time.Duration(r.heard.Load())
		if silent >= 2*r.probe {
			r.close(fmt.Errorf("nothing heard from the OVSDB server for %v", silent.Round(time.Millisecond)))
			return
		}
		next := r.probe - silent
		if silent >= r.probe {
			next = 2*r.probe - silent
			select {
			case r.out <- []byte(`{"method":"echo","params":[],"id":"probe"}`):
			default: // the writer is stuck: silence will tell
			}
		}
		select {
		case <-time.After(next):
		case <-r.stopped:
			return
		}
	}
}

// hearing notes when bytes arrive: a large message counts while it trickles in.
type hearing struct{ r *rpc }

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.r.conn.Read(b)
	if n > 0 {
		h.r.heard.Store(int64(time.Since(h.r.start)))
	}
	return n, err
}

func (r *rpc) read() error {
	dec := json.NewDecoder(hearing{r})
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			if err == io.EOF {
				return errors.New("the OVSDB server closed the connection")
			}
			return err
		}
		var err error
		switch {
		case m.Method == "echo":
			err = r.echo(m)
		case m.Method != "":
			err = r.notify(m.Method, m.Params)
		default:
			err = r.answer(m)
		}
		if err != nil {
			return err
		}
	}
}

// echo answers from the reader, so that no other work can delay it.
func (r *rpc) echo(m message) error {
	if null(m.ID) {
		return nil
	}
	if null(m.Params) {
		m.Params = json.RawMessage("[]")
	}
	b, err := json.Marshal(map[string]any{"id": m.ID, "result": m.Params, "error": nil})
	if err != nil {
		return err
	}
	select {
	case r.out <- b:
		return nil
	default:
		return errors.New("the OVSDB server does not read what it is sent")
	}
}

func (r *rpc) answer(m message) error {
	var id uint64
	if json.Unmarshal(m.ID, &id) != nil {
		return nil // the reply to our probe, or to nobody
	}
	r.mu.Lock()
	call, ok := r.pending[id]
	delete(r.pending, id)
	r.mu.Unlock()
	if !ok {
		return nil // its caller has left
	}
	if !null(m.Error) {
		call.reply <- rpcReply{err: &rpcError{text: errorText(m.Error)}}
		return nil
	}
	var err error
	if call.onReply != nil {
		err = call.onReply(m.Result)
	}
	call.reply <- rpcReply{result: m.Result, err: err}
	return err
}
