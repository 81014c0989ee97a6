package prepare

import (
	"context"
	"fmt"
	"time"
)

// callTime bounds the wait for one answer of HNS.
const callTime = 30 * time.Second

// HNS calls the Host Network Service of this node. A call that hangs goes on
// when nobody waits for it any more, and holds a thread for as long; so there is
// one at a time, and the next waits for its turn.
type HNS struct {
	call func(method, path, body string) ([]byte, error) // may never return
	turn chan struct{}                                   // holds one while a call is under way
}

func newHNS(call func(method, path, body string) ([]byte, error)) *HNS {
	return &HNS{call: call, turn: make(chan struct{}, 1)}
}

// Call implements Caller.
func (h *HNS) Call(ctx context.Context, method, path, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer in %s: is the service hns well?", callTime))
	defer cancel()
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("not asked, as an earlier call has not returned: %w", context.Cause(ctx))
	}
	type result struct {
		answer []byte
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-h.turn }()
		answer, err := h.call(method, path, body)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
