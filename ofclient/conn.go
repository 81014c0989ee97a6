package ofclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

// Conn is one OpenFlow session. Config.Replay gets it before the session is
// ready. Its methods fail at once when the session has ended; they may be
// called concurrently.
type Conn struct {
	nc         net.Conn
	cfg        *Config
	logger     klog.Logger
	ports      portTable
	onPorts    func(c *Conn, names []string) // tells which ports changed; called by the reader, does not block
	datapathID uint64                        // set by the handshake

	hello  chan struct{} // closed when the switch has agreed on the version
	writes chan *write   // unbuffered: what the writer accepted counts as sent
	urgent chan *write   // never waited on: what the reader sends
	done   chan struct{} // closed when the session has ended
	wg     sync.WaitGroup

	lastRead atomic.Int64 // nanoseconds since start
	start    time.Time

	mu       sync.Mutex
	err      error // why the session ended
	nextXID  uint32
	bundleID uint32
	pending  []*request
	probes   uint64 // echo requests written
}

// write is what the writer takes: whole frames, and the request they belong to, if any.
type write struct {
	frames []byte
	req    *request
	probe  bool // an echo request of ours
}

const (
	// maxPending bounds the requests that wait for an answer: more means that
	// somebody sends without waiting for results.
	maxPending = 1024
	// urgentQueue bounds the echo replies that wait to be written. A peer that
	// sends more without reading ours gets no more.
	urgentQueue = 32
)

// newConn starts the goroutines of a session. Close ends them.
func newConn(nc net.Conn, cfg *Config, logger klog.Logger, onPorts func(*Conn, []string)) *Conn {
	c := &Conn{
		nc: nc, cfg: cfg, logger: logger, onPorts: onPorts,
		hello: make(chan struct{}), writes: make(chan *write), urgent: make(chan *write, urgentQueue), done: make(chan struct{}),
		start: time.Now(),
	}
	c.ports.set = newPortSet()
	c.wg.Go(c.readLoop)
	c.wg.Go(c.writeLoop)
	c.wg.Go(c.probeLoop)
	return c
}

// close ends the session and waits for its goroutines.
func (c *Conn) close() {
	c.fail(errClosed)
	c.wg.Wait()
}

// fail ends the session: every pending request is answered with its loss. Only
// the first cause counts. It may be called by any goroutine.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = cause
	close(c.done)
	c.nc.Close()
	for _, r := range c.pending {
		r.err = &lostError{cause}
		close(r.done)
	}
	c.pending = nil
}

// cause returns why the session ended; nil while it lives.
func (c *Conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// request is a wait for the answers to a range of xids.
type request struct {
	base, n uint32
	// accept is called for every message whose xid is in the range, in order,
	// by the reader with Conn.mu held: it must be short and must not block. It
	// reports whether the answer is complete.
	accept func(xid uint32, m ofp.Message) (complete bool, err error)
	done   chan struct{} // closed when complete or lost
	err    error         // valid once done is closed

	awaited bool   // the writer has begun with it and it is not answered yet
	stamp   uint64 // Conn.probes when it was written; unwritten before that
}

// unwritten is later than every probe.
const unwritten = math.MaxUint64 - 1

// register reserves n xids for r and makes r known to the reader.
func (c *Conn) register(r *request, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return notSent(c.err)
	}
	if len(c.pending) >= maxPending {
		return fmt.Errorf("%w: %d OpenFlow requests wait for an answer already", podnet.ErrTryAgain, maxPending)
	}
	r.base, r.n, r.done = c.reserve(uint32(n)), uint32(n), make(chan struct{})
	c.pending = append(c.pending, r)
	return nil
}

// reserve returns the first of n consecutive xids, none of which is 0: that
// one is for messages without a request.
func (c *Conn) reserve(n uint32) uint32 {
	base := c.nextXID
	if base == 0 || base+n < base {
		base = 1
	}
	c.nextXID = base + n
	return base
}

// forget withdraws r; answers that come later are dropped.
func (c *Conn) forget(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(r)
}

func (c *Conn) remove(r *request) {
	for i, p := range c.pending {
		if p == r {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			return
		}
	}
}

// send hands frames to the writer. An error says that nothing was written.
func (c *Conn) send(ctx context.Context, w *write) error {
	select {
	case c.writes <- w:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return notSent(c.cause())
	}
}

// sendUrgent queues frames before all others without waiting, and reports whether there was room.
func (c *Conn) sendUrgent(w *write) bool {
	select {
	case c.urgent <- w:
		return true
	default:
		return false
	}
}

// wait returns the result of r, a *lostError when the session ended first, or
// the cause of ctx's end.
func (c *Conn) wait(ctx context.Context, r *request) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	c.forget(r)
	select {
	case <-r.done: // it came at the same moment
		return r.err
	default:
		return context.Cause(ctx)
	}
}

// query sends one message that changes nothing and collects the answer with accept.
func (c *Conn) query(ctx context.Context, m ofp.Message, accept func(m ofp.Message) (complete bool, err error)) error {
	r := &request{accept: func(_ uint32, m ofp.Message) (bool, error) { return accept(m) }}
	if err := c.register(r, 1); err != nil {
		return err
	}
	frame, err := ofp.Append(nil, r.base, m)
	if err == nil {
		err = c.send(ctx, &write{frames: frame, req: r})
	}
	if err != nil {
		c.forget(r)
		return err
	}
	return notAnswered(c.wait(ctx, r))
}

// unexpected is the error for an answer of a type that does not belong to its request.
func unexpected(m ofp.Message) error {
	if e, ok := m.(*ofp.Error); ok {
		return e
	}
	return fmt.Errorf("the switch answered with %s", m.Type())
}

var errNoAnswer = errors.New("no answer although the switch answered echo requests sent later: a reply was lost")
