package vswitch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

// Client manages the ports of one bridge. Make it with New and keep Run going:
// methods wait for a current copy of the database until their context ends. All
// methods may be called concurrently.
type Client struct {
	cfg  Config
	adds *join.Joiner[addition, podnet.PortKey]
	dels *join.Joiner[podnet.PortKey, struct{}]
	sets *join.Joiner[idChange, struct{}]

	mu      sync.Mutex
	session *session             // nil while the tables are not current
	tables  *tables              // of the current or the last session; nil before the first
	seen    map[string]portState // of our bridge, by name: what watches were told last
	waiters map[string]map[*waiter]struct{}
	watches map[*Watch]struct{}
	status  Status
	ended   chan struct{} // closed when Run is over
}

var _ podnet.Bridge = (*Client)(nil)

// Status tells how the connection to OVSDB does.
type Status struct {
	Connected  bool      // the copy of the database is complete and current
	Since      time.Time // of the last change of Connected; zero before the first connection
	LastError  string    // why the last connection or attempt ended; "" when there was none
	Reconnects int       // connections after the first
}

// New returns a client for one bridge. It connects only in Run.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, waiters: map[string]map[*waiter]struct{}{}, watches: map[*Watch]struct{}{},
		seen: map[string]portState{}, ended: make(chan struct{}),
	}
	c.adds = join.New(c.runAdds, maxJoined)
	c.adds.Abandoned = c.removeAbandoned
	c.dels = join.New(c.runDeletes, maxJoined)
	c.sets = join.New(c.runIDChanges, maxJoined)
	return c, nil
}

// Run keeps the client connected until ctx ends; connections that fail or
// break are made anew for ever, with back-off. It returns nil, after every goroutine
// of the client has ended. Calls in flight then fail; a client runs once.
func (c *Client) Run(ctx context.Context) error {
	defer func() {
		close(c.ended)
		c.adds.Close()
		c.dels.Close()
		c.sets.Close()
	}()
	log := klog.FromContext(ctx).WithValues("endpoint", c.cfg.Endpoint, "bridge", c.cfg.Bridge)
	ctx = klog.NewContext(ctx, log)
	delay := backoffMin
	var told repeated
	for {
		began := time.Now()
		current, err := c.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.mu.Lock()
		c.status.LastError = err.Error()
		c.mu.Unlock()
		if current {
			told = repeated{}
			if time.Since(began) > c.cfg.BackoffMax {
				delay = backoffMin
			}
		}
		if told.worthSaying(err) {
			log.Error(err, "OVSDB is away; connecting again", "repeats", told.silent, "delay", delay)
		}
		select {
		case <-time.After(delay/2 + rand.N(delay/2)):
		case <-ctx.Done():
			return nil
		}
		delay = min(2*delay, c.cfg.BackoffMax)
	}
}

// repeated keeps an error that comes again and again from filling the log.
type repeated struct {
	text   string
	at     time.Time
	silent int
}

func (r *repeated) worthSaying(err error) bool {
	if err.Error() == r.text && time.Since(r.at) < time.Minute {
		r.silent++
		return false
	}
	*r = repeated{text: err.Error(), at: time.Now(), silent: r.silent}
	return true
}

// serve makes one connection, and serves it until it breaks. current tells
// whether it came as far as a current copy of the database.
func (c *Client) serve(ctx context.Context) (current bool, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	conn, err := c.cfg.Dial(dialCtx)
	cancel()
	if err != nil {
		return false, fmt.Errorf("connect to OVSDB at %s: %w; is ovsdb-server running?", c.cfg.Endpoint, err)
	}
	s := newSession(c, conn)
	var wg sync.WaitGroup
	wg.Go(func() { err = s.rpc.run(ctx) })
	if failed := s.handshake(ctx); failed != nil {
		s.rpc.close(failed)
	} else {
		current = true
	}
	wg.Wait()
	return current, err
}

// Status returns how the connection does now.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}
