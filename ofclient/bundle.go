package ofclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// bundleFlags: packets see all of a bundle or nothing, and its messages apply in
// their order, so that a delete may come before an add.
const bundleFlags = ofp.BundleAtomic | ofp.BundleOrdered

// bundle is one bundle, encoded whole: nothing is sent of one that cannot be.
type bundle struct {
	req     request
	id      uint32
	entries []*entry
	first   []uint32 // offset of each entry's first add in the xid range
	mods    int      // flow changes in it
	span    uint32   // xids set apart for adds; some may be unused
	frames  []byte   // open, adds, barrier
	commit  []byte

	// Written by the reader until barrier, and then req.done, are closed.
	barrier chan struct{}
	opened  *ofp.Error            // the switch's error for the open
	faults  map[uint32]*ofp.Error // errors for adds, by offset in the range
	other   *ofp.Error            // its error for the barrier or the commit
}

// The xid range of a bundle: open, adds, barrier, commit.
func (b *bundle) barrierAt() uint32 { return b.span + 1 }
func (b *bundle) commitAt() uint32  { return b.span + 2 }

// result is how a bundle ended.
type result struct {
	outcome BundleOutcome
	faults  map[uint32]*ofp.Error // the adds at fault; the rest of the bundle was not applied either
	err     error                 // for every entry, unless faults says more
}

// accept is the request's; see request.accept.
func (b *bundle) accept(xid uint32, m ofp.Message) (complete bool, err error) {
	at := xid - b.req.base
	switch m := m.(type) {
	case *ofp.Error:
		switch {
		case at == 0:
			b.opened = m
		case at <= b.span:
			if b.faults[at] == nil {
				b.faults[at] = m
			}
		default:
			b.other = m
		}
	case *ofp.BundleControl:
		if m.BundleID != b.id {
			return true, fmt.Errorf("the switch answered for bundle %#x, not %#x", m.BundleID, b.id)
		}
	}
	if at == b.barrierAt() {
		b.req.awaited = false // between the phases it is our turn
		select {
		case <-b.barrier:
		default:
			close(b.barrier)
		}
	}
	_, isError := m.(*ofp.Error)
	control, isControl := m.(*ofp.BundleControl)
	committed := isControl && control.Kind == ofp.BundleCommitReply
	return at == b.commitAt() && (isError || committed), nil
}

// run sends b and waits for its outcome. When ctx ends before the commit is
// written, the bundle is discarded; after that its outcome is awaited, which the
// life of the session bounds.
func (c *Conn) run(ctx context.Context, b *bundle) result {
	start := time.Now()
	res := c.runPhases(ctx, b)
	c.cfg.Observer.Bundle(res.outcome, b.mods, time.Since(start))
	return res
}

func (c *Conn) runPhases(ctx context.Context, b *bundle) result {
	if err := c.send(ctx, &write{frames: b.frames, req: &b.req}); err != nil {
		c.forget(&b.req)
		return result{outcome: BundleAborted, err: err}
	}
	select {
	case <-b.barrier:
	case <-b.req.done:
		c.discard(b)
		err := b.req.err
		if err == nil {
			err = errors.New("the switch answered a commit that was not asked for")
		}
		return result{outcome: BundleAborted, err: notAnswered(err)}
	case <-ctx.Done():
		c.discard(b)
		return result{outcome: BundleAborted, err: context.Cause(ctx)}
	}
	if res, bad := c.verdict(b); bad {
		c.discard(b)
		return res
	}
	if err := c.send(ctx, &write{frames: b.commit, req: &b.req}); err != nil {
		c.discard(b)
		return result{outcome: BundleAborted, err: err}
	}
	<-b.req.done
	if b.req.err != nil {
		return result{outcome: BundleUnknown, err: unknown(b.req.err)}
	}
	if res, bad := c.verdict(b); bad {
		return res
	}
	return result{outcome: BundleCommitted}
}

// verdict reports whether any error came so far, and what it means. It takes
// the connection's lock because the reader may still add to b.
func (c *Conn) verdict(b *bundle) (result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case b.opened != nil:
		// The adds are no proof of anything: without an open bundle Open vSwitch
		// opens one in silence for the first add.
		res := result{outcome: BundleRefused, err: fmt.Errorf("the switch refuses a bundle: %w", b.opened)}
		if b.opened.ErrType == ofp.ErrTypeBundleFailed && b.opened.Code == ofp.ErrBundleTimeout {
			res.outcome = BundleTimeout
		}
		return res, true
	case len(b.faults) > 0:
		return result{outcome: BundleRefused, faults: b.faults}, true
	case b.other != nil:
		return result{outcome: BundleRefused, err: fmt.Errorf("the switch refuses to commit a bundle: %w", b.other)}, true
	}
	return result{}, false
}

// discard tells the switch to drop b without waiting for the answer. Should
// that not be possible at once, the switch drops it itself after ten idle seconds.
func (c *Conn) discard(b *bundle) {
	c.forget(&b.req)
	r := &request{accept: func(uint32, ofp.Message) (bool, error) { return true, nil }}
	if c.register(r, 1) != nil {
		return
	}
	frame, err := ofp.Append(nil, r.base, &ofp.BundleControl{BundleID: b.id, Kind: ofp.BundleDiscardRequest, Flags: bundleFlags})
	if err != nil || !c.sendUrgent(&write{frames: frame, req: r}) {
		c.forget(r)
	}
}
