package ofclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// Send implements Sender.
func (c *Conn) Send(ctx context.Context, msgs ...ofp.Message) error {
	for _, m := range msgs {
		if _, ok := m.(*ofp.FlowMod); ok {
			return errors.New("ofclient: Send refuses flow changes, use Apply: outside a bundle they may be applied after the session that sent them")
		}
	}
	var refused error
	r := &request{}
	r.accept = func(xid uint32, m ofp.Message) (bool, error) {
		at := int(xid - r.base)
		if e, ok := m.(*ofp.Error); ok && refused == nil {
			refused = refusal(at, e, msgs)
		}
		if at < len(msgs) {
			return false, nil
		}
		return true, refused
	}
	if err := c.register(r, len(msgs)+1); err != nil {
		return err
	}
	frames, err := appendAll(nil, r.base, msgs)
	if err == nil {
		frames, err = ofp.Append(frames, r.base+uint32(len(msgs)), &ofp.BarrierRequest{})
	}
	if err == nil {
		err = c.send(ctx, &write{frames: frames, req: r})
	}
	if err != nil {
		c.forget(r)
		return err
	}
	err = c.wait(ctx, r)
	select {
	case <-r.done:
		if _, lost := errors.AsType[*lostError](err); !lost {
			return err
		}
	default: // ctx ended
	}
	return unknown(err)
}

// refusal words the switch's error for the message at an index; the barrier is the last.
func refusal(at int, e *ofp.Error, msgs []ofp.Message) error {
	if at < len(msgs) {
		return fmt.Errorf("the switch refuses %s: %w", msgs[at].Type(), e)
	}
	return fmt.Errorf("the switch refuses a barrier: %w", e)
}

func appendAll(dst []byte, base uint32, msgs []ofp.Message) ([]byte, error) {
	var err error
	for i, m := range msgs {
		if dst, err = ofp.Append(dst, base+uint32(i), m); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// FlowStats implements Sender.
func (c *Conn) FlowStats(ctx context.Context, req ofp.FlowStatsRequest) ([]ofp.FlowStats, error) {
	var flows []ofp.FlowStats
	err := c.query(ctx, &req, func(m ofp.Message) (bool, error) {
		reply, ok := m.(*ofp.FlowStatsReply)
		if !ok {
			return true, unexpected(m)
		}
		flows = append(flows, reply.Flows...)
		return !reply.More, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the switch's flows: %w", err)
	}
	return flows, nil
}
