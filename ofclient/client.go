package ofclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

var (
	_ Sender = (*Client)(nil)
	_ Sender = (*Conn)(nil)
)

// errStopped is why nothing is sent after Run has returned.
var errStopped = errors.New("the OpenFlow client has stopped")

// Client keeps an OpenFlow session to one bridge. Make it with New, start it
// with Run; all other methods may be called before and meanwhile, by many
// goroutines.
type Client struct {
	cfg    Config
	hub    watchHub
	joiner *join.Joiner[[]Group, []error]

	mu       sync.Mutex
	status   Status
	conn     *Conn         // the present session, ready or not; nil between sessions
	changed  chan struct{} // closed and replaced when Ready changes
	sessions int           // established so far
	stopped  bool
}

// New checks cfg and returns a Client. It opens nothing.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, changed: make(chan struct{})}
	c.hub = watchHub{watches: make(map[*PortWatch]struct{}), known: make(map[string]struct{}), coalesced: cfg.Observer.Coalesced}
	c.joiner = join.New(c.applyJoined, 0)
	return c, nil
}

// Run dials, keeps the session and dials again, for ever; it returns nil when
// ctx ends, and then every goroutine of the Client has ended. Call it once.
func (c *Client) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx).WithName("ofclient")
	log := failureLog{logger: logger}
	pause := backoff{min: c.cfg.BackoffMin, max: c.cfg.BackoffMax}
	defer c.stop()
	for ctx.Err() == nil {
		readyFor, err := c.session(ctx, logger)
		if ctx.Err() != nil {
			break
		}
		c.mu.Lock()
		c.status.LastError = err.Error()
		c.mu.Unlock()
		log.failed(err, "OpenFlow session ended, dialling again")
		// A session that held for a while is no sign of a switch that flaps.
		if readyFor >= c.cfg.BackoffMax {
			pause.reset()
		}
		timer := time.NewTimer(pause.next())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return nil
}

// session runs one session from dialling to its end. It returns how long the
// session was ready and why it ended.
func (c *Client) session(ctx context.Context, logger klog.Logger) (readyFor time.Duration, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	nc, err := c.cfg.Dial(dialCtx)
	cancel()
	if err != nil {
		return 0, err
	}
	conn := newConn(nc, &c.cfg, logger, c.hub.changed)
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	// The session's end ends whatever works for it, replay above all.
	conn.wg.Go(func() {
		select {
		case <-conn.done:
			cancel()
		case <-ctx.Done():
			conn.fail(errClosed)
		}
	})
	defer func() {
		c.setConn(nil, false)
		c.hub.end()
		cancel()
		conn.close()
		// Why the session ended says more than what its end made fail.
		if cause := conn.cause(); !errors.Is(cause, errClosed) {
			err = cause
		}
	}()

	if err := c.establish(ctx, conn); err != nil {
		return 0, err
	}
	start := time.Now()
	logger.Info("OpenFlow session is ready", "datapathID", fmt.Sprintf("%016x", conn.datapathID))
	conn.listPeriodically(ctx, failureLog{logger: logger})
	return time.Since(start), conn.cause()
}

// establish brings a connection to the known state that makes it ready.
func (c *Client) establish(ctx context.Context, conn *Conn) error {
	if err := conn.handshake(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	again := c.sessions > 0
	if again {
		c.status.Reconnects++
	}
	c.sessions++
	c.status.DatapathID = conn.datapathID
	c.mu.Unlock()
	c.setConn(conn, false)
	if again {
		c.cfg.Observer.Reconnect()
	}
	if _, err := conn.Ports(ctx); err != nil {
		return err
	}
	if err := c.cfg.Replay(ctx, conn); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if cause := conn.cause(); cause != nil {
		return cause
	}
	c.setConn(conn, true)
	c.hub.begin(conn)
	return nil
}

// setConn records the present session and wakes those who wait for a ready one.
func (c *Client) setConn(conn *Conn, ready bool) {
	c.mu.Lock()
	c.conn = conn
	if c.status.Ready != ready {
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	c.setState(conn != nil, ready)
}

// stop answers everybody who still waits.
func (c *Client) stop() {
	c.mu.Lock()
	c.stopped = true
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	c.joiner.Close()
}

// ready returns the ready session, or nil and what to wait for.
func (c *Client) ready() (conn *Conn, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopped:
		return nil, nil, notSent(errStopped)
	case c.status.Ready && c.conn.cause() == nil:
		return c.conn, nil, nil
	}
	return nil, c.changed, nil
}

// waitReady waits for a ready session. The error says why there is none.
func (c *Client) waitReady(ctx context.Context) (*Conn, error) {
	for {
		conn, changed, err := c.ready()
		if conn != nil || err != nil {
			return conn, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			st := c.Status()
			why := "the switch was not dialled yet"
			switch {
			case st.Connected:
				why = "the session is not ready yet: flows are being replayed"
			case st.LastError != "":
				why = st.LastError
			}
			return nil, fmt.Errorf("%w to the switch (%s): %w", podnet.ErrNotConnected, why, context.Cause(ctx))
		}
	}
}

// listPeriodically repairs lost port events until the session ends.
func (c *Conn) listPeriodically(ctx context.Context, log failureLog) {
	var tick <-chan time.Time
	if c.cfg.ListPeriod > 0 {
		ticker := time.NewTicker(c.cfg.ListPeriod)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-c.done:
			return
		case <-tick:
		}
		if _, err := c.Ports(ctx); err != nil && c.cause() == nil {
			log.failed(err, "Periodic port list failed")
		}
	}
}

// Apply implements Sender. It waits for a ready session once; a session that
// ends meanwhile is reported and not waited for, so that the caller can let go
// of locks that the replay needs.
func (c *Client) Apply(ctx context.Context, groups []Group) []error {
	if _, err := c.waitReady(ctx); err != nil {
		return fill(len(groups), err)
	}
	errs, err := c.joiner.Do(ctx, groups)
	switch {
	case err == nil:
		return errs
	case errors.Is(err, join.ErrInFlight):
		err = unknown(err)
	case errors.Is(err, join.ErrClosed):
		err = notSent(errStopped)
	}
	return fill(len(groups), err)
}

// applyJoined sends the groups of all callers that wait together.
func (c *Client) applyJoined(ctx context.Context, batch [][]Group) []join.Result[[]error] {
	var all []Group
	for _, groups := range batch {
		all = append(all, groups...)
	}
	var errs []error
	if conn, _, err := c.ready(); conn != nil {
		errs = conn.Apply(ctx, all)
	} else {
		if err == nil {
			err = notSent(errors.New("the session ended before the flows were sent"))
		}
		errs = fill(len(all), err)
	}
	results := make([]join.Result[[]error], len(batch))
	for i, groups := range batch {
		results[i].Value, errs = errs[:len(groups):len(groups)], errs[len(groups):]
	}
	return results
}

func fill(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Send implements Sender.
func (c *Client) Send(ctx context.Context, msgs ...ofp.Message) error {
	conn, err := c.waitReady(ctx)
	if err != nil {
		return err
	}
	return conn.Send(ctx, msgs...)
}

// FlowStats implements Sender.
func (c *Client) FlowStats(ctx context.Context, req ofp.FlowStatsRequest) ([]ofp.FlowStats, error) {
	conn, err := c.waitReady(ctx)
	if err != nil {
		return nil, err
	}
	return conn.FlowStats(ctx, req)
}

// Ports implements Sender.
func (c *Client) Ports(ctx context.Context) ([]ofp.PortDesc, error) {
	conn, err := c.waitReady(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Ports(ctx)
}
