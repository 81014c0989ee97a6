package podflows

import (
	"context"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// CheckFlows compares the flows on the switch that carry the interface's cookie
// with those that should be there, actions included.
func (i *Installer) CheckFlows(ctx context.Context, iface ifstore.Interface) error {
	mods, err := ifaceFlows(iface, 0)
	if err != nil {
		return err
	}
	cookie, mask := CookieOf(iface.Key)
	stats, err := i.sender.FlowStats(ctx, ofp.FlowStatsRequest{Table: ofp.TableAll, Cookie: cookie, CookieMask: mask})
	if err != nil {
		return fmt.Errorf("read the flows of %s: %w", nameOf(iface), err)
	}
	d := compare(mods, stats)
	switch {
	case len(d.missing) > 0:
		return fmt.Errorf("%d of the %d flows of %s are not on the switch, the first: table %s: %v",
			len(d.missing), len(mods), nameOf(iface), TableName(d.missing[0].Table), d.missing[0])
	case len(d.stale) > 0:
		return fmt.Errorf("%d flows of %s should not be on the switch, the first: table %s: %v",
			len(d.stale), nameOf(iface), TableName(d.stale[0].Table), d.stale[0])
	}
	return nil
}

// Audit reads back all of podnet's flows and counts those that should be there
// and are not, and those that are and should not. A flow that has the wrong
// actions counts as both. ifaces are the interfaces whose flows should stand;
// the caller keeps changes out while it runs, or counts them too.
func (i *Installer) Audit(ctx context.Context, ifaces []ifstore.Interface) (missing, stale int, err error) {
	want := i.NodeFlows()
	for _, iface := range ifaces {
		mods, err := ifaceFlows(iface, 0)
		if err != nil {
			return 0, 0, err
		}
		want = append(want, mods...)
	}
	have, err := ownedFlows(ctx, i.sender)
	if err != nil {
		return 0, 0, fmt.Errorf("audit: read the flows on the switch: %w", err)
	}
	d := compare(want, have)
	return len(d.missing), len(d.stale), nil
}

type difference struct {
	missing []ofp.FlowMod
	stale   []ofp.FlowStats
}

// compare ignores the round: a flow of an interface that waited for the session
// is right, whichever round it was built in.
func compare(want []ofp.FlowMod, have []ofp.FlowStats) difference {
	var d difference
	on := make(map[ofp.CanonicalFlow]bool, len(have))
	for n := range have {
		on[sansRound(have[n].Canonical())] = true
	}
	asked := make(map[ofp.CanonicalFlow]bool, len(want))
	for n := range want {
		c := sansRound(want[n].Canonical())
		asked[c] = true
		if !on[c] {
			d.missing = append(d.missing, want[n])
		}
	}
	for n := range have {
		if !asked[sansRound(have[n].Canonical())] {
			d.stale = append(d.stale, have[n])
		}
	}
	return d
}

func sansRound(c ofp.CanonicalFlow) ofp.CanonicalFlow {
	c.Cookie &^= roundMask
	return c
}
