package ofclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

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

// Apply implements Sender. It waits for a ready session once; a session that
// ends meanwhile is reported and not waited for, so that the caller can let go
// of locks that the replay needs.
func (c *Client) Apply(ctx context.Context, groups []Group) []error {
	if len(groups) == 0 {
		return nil
	}
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
