package ofclient

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// session runs one session from dialling to its end. It returns how long the
// session was ready and why it ended.
func (c *Client) session(ctx context.Context, log *rateLog) (readyFor time.Duration, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	nc, err := c.cfg.Dial(dialCtx)
	cancel()
	if err != nil {
		return 0, err
	}
	conn := newConn(nc, &c.cfg, log.logger, c.hub.changed)
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
	log.info("OpenFlow session is ready", "datapathID", fmt.Sprintf("%016x", conn.datapathID))
	conn.listPeriodically(ctx, log)
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

// listPeriodically repairs lost port events until the session ends.
func (c *Conn) listPeriodically(ctx context.Context, log *rateLog) {
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
		_, differ, err := c.listPorts(ctx)
		switch {
		case c.cause() != nil:
			return
		case err != nil:
			log.failed(err, "Periodic port list failed")
		case differ > 0:
			// The subscription should have told them: the self-check of its order on the wire.
			c.cfg.Observer.Repaired(differ)
			log.info("Port changes were found by listing that no PORT_STATUS had told", "ports", differ)
		}
	}
}
