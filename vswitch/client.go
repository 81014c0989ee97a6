package vswitch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

	changes *join.Joiner[ifaceChange, struct{}]
	tunnels *join.Joiner[tunnelChange, struct{}]

	mu      sync.Mutex
	session *session             // nil while the tables are not current
	tables  *tables              // of the current or the last session; nil before the first
	seen    map[string]portState // of our bridge, by name: what watches were told last
	waiters map[string]map[*waiter]struct{}
	watches map[*Watch]struct{}
	status  Status

	running atomic.Bool
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
	c.changes = join.New(c.runIfaceChanges, maxJoined)
	c.tunnels = join.New(c.runTunnelChanges, maxJoined)
	return c, nil
}

// Run keeps the client connected until ctx ends; connections that fail or
// break are made anew for ever, with back-off. It returns nil, after every goroutine
// of the client has ended. Calls in flight then fail; a client runs once.
func (c *Client) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return errors.New("the OVSDB client runs already, or has run")
	}
	defer func() {
		close(c.ended)
		c.adds.Close()
		c.dels.Close()
		c.sets.Close()
		c.changes.Close()
		c.tunnels.Close()
	}()
	log := klog.FromContext(ctx).WithValues("endpoint", c.cfg.Endpoint, "bridge", c.cfg.Bridge)
	ctx = klog.NewContext(ctx, log)
	first := min(backoffMin, c.cfg.BackoffMax)
	delay := first
	var told repeated
	for {
		began := time.Now()
		err := c.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.mu.Lock()
		c.status.LastError = err.Error()
		c.mu.Unlock()
		if time.Since(began) > c.cfg.BackoffMax {
			delay = first
		}
		unsaid := told.silent
		if told.worthSaying(err) {
			log.Error(err, "OVSDB is away; connecting again", "alikeBefore", unsaid)
		}
		select {
		case <-time.After(delay/2 + rand.N(delay/2+1)):
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
	pause := time.Minute
	if err.Error() != r.text {
		pause = 2 * time.Second
	}
	if time.Since(r.at) < pause {
		r.silent++
		return false
	}
	*r = repeated{text: err.Error(), at: time.Now()}
	return true
}

// serve makes one connection, serves it until it breaks, and returns why.
func (c *Client) serve(ctx context.Context) error {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	conn, err := c.cfg.Dial(dialCtx)
	cancel()
	if err != nil {
		return fmt.Errorf("connect to OVSDB at %s: %w; is ovsdb-server running?", c.cfg.Endpoint, err)
	}
	s := newSession(c, conn)
	var wg sync.WaitGroup
	wg.Go(func() { err = s.rpc.run(ctx) })
	if failed := s.handshake(ctx); failed != nil {
		s.rpc.close(failed) // unless it is closed: then that is the cause
	} else {
		klog.FromContext(ctx).V(1).Info("Connected to OVSDB")
	}
	wg.Wait()
	return err
}

// Status returns how the connection does now.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}
