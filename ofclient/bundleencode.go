package ofclient

import (
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

const (
	// maxBundleMods and maxBundleBytes bound what is joined. A bundle is
	// applied in one go during which the switch answers nobody.
	maxBundleMods  = 4096
	maxBundleBytes = 1 << 20
)

// fit returns how many of queue's entries go into one bundle, at least one,
// and how many flow changes they have.
func fit(queue []*entry) (n int, mods uint32) {
	for n < len(queue) {
		more := uint32(len(queue[n].mods))
		if n > 0 && (mods+more > maxBundleMods || queue[0].alone || queue[n].alone) {
			break
		}
		mods += more
		n++
	}
	return n, mods
}

// encode packs as many of queue's entries as one bundle takes and returns it
// with the rest of the queue. Entries that cannot be encoded get their error and
// are in neither. A nil bundle means that none was left.
func (c *Conn) encode(queue []*entry) (*bundle, []*entry, error) {
	n, span := fit(queue)
	b := &bundle{span: span, barrier: make(chan struct{}), faults: make(map[uint32]*ofp.Error)}
	b.req.accept = b.accept
	if err := c.register(&b.req, int(span)+3); err != nil {
		return nil, queue, err
	}
	c.mu.Lock()
	c.bundleID++
	b.id = c.bundleID
	c.mu.Unlock()

	frames, err := b.control(nil, 0, ofp.BundleOpenRequest)
	at, taken := uint32(1), 0
	for _, e := range queue[:n] {
		if err != nil || len(b.entries) > 0 && len(frames) > maxBundleBytes {
			break
		}
		frames = b.add(frames, e, at)
		at += uint32(len(e.mods)) // one that was left out makes a gap in the xids, which is no harm
		taken++
	}
	if err == nil {
		frames, err = ofp.Append(frames, b.req.base+b.barrierAt(), &ofp.BarrierRequest{})
	}
	if err == nil {
		b.commit, err = b.control(nil, b.commitAt(), ofp.BundleCommitRequest)
	}
	if err != nil || len(b.entries) == 0 {
		c.forget(&b.req)
		return nil, queue[taken:], err
	}
	b.frames = frames
	return b, queue[taken:], nil
}

// add appends all of e's changes to frames, or none and leaves the reason in e.
func (b *bundle) add(frames []byte, e *entry, at uint32) []byte {
	start := len(frames)
	var err error
	for i := range e.mods {
		frames, err = ofp.Append(frames, b.req.base+at+uint32(i), &ofp.BundleAdd{BundleID: b.id, Flags: bundleFlags, Inner: &e.mods[i]})
		if err != nil {
			e.err = &FlowError{Group: e.name, Mod: e.mods[i], Cause: err}
			return frames[:start]
		}
	}
	b.entries, b.first = append(b.entries, e), append(b.first, at)
	b.mods += len(e.mods)
	return frames
}

func (b *bundle) control(dst []byte, at uint32, kind ofp.BundleKind) ([]byte, error) {
	return ofp.Append(dst, b.req.base+at, &ofp.BundleControl{BundleID: b.id, Kind: kind, Flags: bundleFlags})
}
