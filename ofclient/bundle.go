package ofclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

const (
	// bundleFlags: packets see all of a bundle or nothing, and its messages
	// apply in their order, so that a delete may come before an add.
	bundleFlags = ofp.BundleAtomic | ofp.BundleOrdered
	// maxBundleMods and maxBundleBytes bound what is joined. A bundle is
	// applied in one go during which the switch answers nobody.
	maxBundleMods  = 4096
	maxBundleBytes = 1 << 20
)

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

// encode packs as many of queue's entries as one bundle takes, at least one,
// and returns it with the rest of the queue. Entries that cannot be encoded get
// their error and are in neither. A nil bundle means that none was left.
func (c *Conn) encode(queue []*entry) (*bundle, []*entry, error) {
	mods, n := 0, 0
	for n < len(queue) && (n == 0 || mods+len(queue[n].mods) <= maxBundleMods && !queue[n].alone && !queue[0].alone) {
		mods += len(queue[n].mods)
		n++
	}
	b := &bundle{span: uint32(mods), barrier: make(chan struct{}), faults: make(map[uint32]*ofp.Error)}
	b.req.accept = b.accept
	if err := c.register(&b.req, mods+3); err != nil {
		return nil, queue, err
	}
	c.mu.Lock()
	c.bundleID++
	b.id = c.bundleID
	c.mu.Unlock()

	base := b.req.base
	control := func(dst []byte, at uint32, kind ofp.BundleKind) []byte {
		dst, err := ofp.Append(dst, base+at, &ofp.BundleControl{BundleID: b.id, Kind: kind, Flags: bundleFlags})
		if err != nil {
			panic(err) // fixed size, fixed values
		}
		return dst
	}
	b.frames = control(nil, 0, ofp.BundleOpenRequest)
	at := uint32(1)
	taken := 0
	for _, e := range queue[:n] {
		if len(b.entries) > 0 && len(b.frames) > maxBundleBytes {
			break
		}
		taken++
		start := len(b.frames)
		var err error
		for i := range e.mods {
			b.frames, err = ofp.Append(b.frames, base+at+uint32(i), &ofp.BundleAdd{BundleID: b.id, Flags: bundleFlags, Inner: &e.mods[i]})
			if err != nil {
				e.err = &FlowError{Group: e.name, Mod: e.mods[i], Cause: err}
				b.frames = b.frames[:start]
				break
			}
		}
		if err == nil {
			b.entries, b.first = append(b.entries, e), append(b.first, at)
			b.mods += len(e.mods)
		}
		at += uint32(len(e.mods)) // a gap in the xids is no harm
	}
	if len(b.entries) == 0 {
		c.forget(&b.req)
		return nil, queue[taken:], nil
	}
	barrier, err := ofp.Append(b.frames, base+b.barrierAt(), &ofp.BarrierRequest{})
	if err != nil {
		panic(err)
	}
	b.frames = barrier
	b.commit = control(nil, b.commitAt(), ofp.BundleCommitRequest)
	return b, queue[taken:], nil
}
