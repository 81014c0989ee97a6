package ofclient

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/internal/join"
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
	changed  chan struct{} // closed and replaced when status.Ready may have changed
	sessions int           // established so far
	stopped  bool
}

// New checks cfg and returns a Client. It opens nothing.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, changed: make(chan struct{}), status: Status{Since: time.Now()}}
	c.hub = watchHub{watches: make(map[*PortWatch]struct{}), known: make(map[string]struct{}), coalesced: cfg.Observer.Coalesced}
	c.joiner = join.New(c.applyJoined, 0)
	return c, nil
}

// Run dials, keeps the session and dials again, for ever; it returns nil when
// ctx ends, and then every goroutine of the Client has ended. Call it once.
func (c *Client) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx).WithName("ofclient")
	log := rateLog{logger: logger}
	pause := backoff{min: c.cfg.BackoffMin, max: c.cfg.BackoffMax}
	defer c.stop()
	for ctx.Err() == nil {
		readyFor, err := c.session(ctx, &log)
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

// stop answers everybody who still waits.
func (c *Client) stop() {
	c.mu.Lock()
	c.stopped = true
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	c.joiner.Close()
}

// setConn records the present session, wakes those who wait for a ready one
// and reports what changed.
func (c *Client) setConn(conn *Conn, ready bool) {
	connected := conn != nil
	c.mu.Lock()
	c.conn = conn
	changed := c.status.Connected != connected || c.status.Ready != ready
	if changed {
		c.status.Connected, c.status.Ready, c.status.Since = connected, ready, time.Now()
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	if changed {
		c.cfg.Observer.Connected(connected, ready)
	}
}
