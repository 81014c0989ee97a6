package ofclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

const (
	// maxGroupMods is the largest group that stays whole.
	maxGroupMods = 16384
	// maxTimeouts is how often a bundle that the switch let expire is sent again.
	maxTimeouts = 3
)

// entry is one group on its way through bundles.
type entry struct {
	name     string
	mods     []ofp.FlowMod
	err      error
	alone    bool // its neighbours were refused with it and nothing said who is at fault
	timeouts int
}

// Apply implements Sender. It ends early only before a commit is sent: once it
// is, the outcome is awaited, which takes three echo intervals at the most.
func (c *Conn) Apply(ctx context.Context, groups []Group) []error {
	errs := make([]error, len(groups))
	entries := make([]*entry, 0, len(groups))
	for _, g := range groups {
		entries = append(entries, &entry{name: g.Name, mods: g.Mods})
	}
	for start := 0; start < len(entries); {
		end := start
		for end < len(entries) && len(entries[end].mods) <= maxGroupMods {
			end++
		}
		c.applyAll(ctx, entries[start:end])
		if end < len(entries) {
			c.applyParts(ctx, entries[end])
			end++
		}
		start = end
	}
	for i, e := range entries {
		errs[i] = e.err
	}
	return errs
}

// applyParts sends a group that is too large for one bundle. Where a part
// fails the ones before it stand.
func (c *Conn) applyParts(ctx context.Context, e *entry) {
	for start := 0; start < len(e.mods); start += maxGroupMods {
		part := &entry{name: e.name, mods: e.mods[start:min(start+maxGroupMods, len(e.mods))]}
		c.applyAll(ctx, []*entry{part})
		if part.err == nil {
			continue
		}
		e.err = part.err
		if start > 0 && !errors.Is(e.err, podnet.ErrOutcomeUnknown) {
			e.err = unknown(fmt.Errorf("the first %d of %d flow changes were applied: %w", start, len(e.mods), e.err))
		}
		return
	}
}

// applyAll sends entries in as few bundles as their size allows and
// leaves each one's outcome in its err.
func (c *Conn) applyAll(ctx context.Context, entries []*entry) {
	queue := make([]*entry, 0, len(entries))
	for _, e := range entries {
		if len(e.mods) > 0 {
			queue = append(queue, e)
		}
	}
	for len(queue) > 0 {
		b, rest, err := c.encode(queue)
		if err != nil {
			for _, e := range queue {
				e.err = err
			}
			return
		}
		if b != nil {
			rest = append(c.settle(b, c.run(ctx, b)), rest...)
		}
		queue = rest
	}
}

// settle records the outcome of b's entries and returns those to send again.
// Each return makes progress: an entry less, or alone, or a timeout more.
func (c *Conn) settle(b *bundle, res result) (again []*entry) {
	if len(res.faults) > 0 {
		for i, e := range b.entries {
			if e.err = b.fault(i, res.faults); e.err == nil {
				again = append(again, e)
			}
		}
		if len(again) < len(b.entries) {
			return again
		}
		again, res.err = nil, errors.New("the switch refuses flows that were not sent")
	}
	for _, e := range b.entries {
		switch {
		case res.outcome == BundleTimeout && e.timeouts < maxTimeouts:
			e.timeouts++
			again = append(again, e)
		case res.outcome == BundleRefused && b.opened == nil && len(b.entries) > 1:
			e.alone = true
			again = append(again, e)
		case res.err != nil:
			e.err = fmt.Errorf("flows of %s: %w", e.name, res.err)
		}
	}
	return again
}

// fault returns the first error for an add of entry i, if any.
func (b *bundle) fault(i int, faults map[uint32]*ofp.Error) error {
	for n := range b.entries[i].mods {
		if e := faults[b.first[i]+uint32(n)]; e != nil {
			return &FlowError{Group: b.entries[i].name, Mod: b.entries[i].mods[n], Cause: e}
		}
	}
	return nil
}
