package podflows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// replayBundle is about how many flow changes go in one bundle of a replay. An
// interface is never split.
const replayBundle = 2000

// Replay makes the switch hold the node's flows and those of ifaces, and none of
// ours beside them. It runs on every new session, before the session is ready,
// with that session's sender. Everything is written under a new round; flows of
// other rounds go only after all of it is in (they may be the same Pods', still
// forwarding). It fails when the session does or the switch refuses the node's
// flows. One interface that cannot be installed keeps no other dark: it is
// logged and left out.
func (i *Installer) Replay(ctx context.Context, sender ofclient.Sender, ifaces []ifstore.Interface) error {
	old, err := ownedRounds(ctx, sender)
	if err != nil {
		return fmt.Errorf("replay: read the flows on the switch: %w", err)
	}
	i.mu.Lock()
	i.round = nextRound(i.round, old)
	i.flush = flushUntried // it may be another version of Open vSwitch now
	round := i.round
	mods, answers := i.nodeParts()
	maps.Copy(i.standing, byKey(append(slices.Clone(mods), answers...)))
	i.mu.Unlock()

	nodeMods, err := i.applyNode(ctx, sender, mods, answers)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	groups := replayGroups(ctx, nodeMods, ifaces, round)
	for len(groups) > 0 {
		n, mods := 0, 0
		for n < len(groups) && (n == 0 || mods+len(groups[n].Mods) <= replayBundle) {
			mods += len(groups[n].Mods)
			n++
		}
		if err := applyAll(ctx, sender, groups[:n]); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		groups = groups[n:]
	}
	if err := deleteRounds(ctx, sender, old); err != nil {
		return fmt.Errorf("replay: remove stale flows: %w", err)
	}
	i.mu.Lock()
	i.standing = byKey(nodeMods)
	i.mu.Unlock()
	klog.FromContext(ctx).V(2).Info("Replayed flows", "round", round, "interfaces", len(ifaces), "staleRounds", len(old))
	return nil
}

// applyAll reports only errors that concern the session.
func applyAll(ctx context.Context, sender ofclient.Sender, groups []ofclient.Group) error {
	for n, err := range sender.Apply(ctx, groups) {
		refused, ok := errors.AsType[*ofclient.FlowError](err)
		switch {
		case err == nil:
		case ok:
			klog.FromContext(ctx).Error(refused, "The switch refused the flows of an interface; it stays without", "interface", groups[n].Name)
		default:
			return err
		}
	}
	return nil
}

// replayGroups builds the flows of all interfaces, oldest first. Two that would
// write an identical match overwrite each other in silence (fact 16), so the
// later one is left out and both are named.
func replayGroups(ctx context.Context, nodeMods []ofp.FlowMod, ifaces []ifstore.Interface, round uint16) []ofclient.Group {
	ifaces = slices.Clone(ifaces)
	slices.SortStableFunc(ifaces, func(a, b ifstore.Interface) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ContainerID, b.ContainerID), cmp.Compare(a.IfName, b.IfName))
	})
	owners := map[ofp.FlowKey]string{}
	for n := range nodeMods {
		owners[nodeMods[n].Key()] = "the node"
	}
	var groups []ofclient.Group
	for _, iface := range ifaces {
		mods, err := ifaceFlows(iface, round)
		if err == nil {
			err = claim(owners, mods, nameOf(iface))
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Left an interface out of the replay", "interface", nameOf(iface), "port", iface.Name)
			continue
		}
		groups = append(groups, ofclient.Group{Name: nameOf(iface), Mods: mods})
	}
	return groups
}

// claim enters the matches of mods for owner, all or none.
func claim(owners map[ofp.FlowKey]string, mods []ofp.FlowMod, owner string) error {
	for n := range mods {
		if other, taken := owners[mods[n].Key()]; taken {
			return fmt.Errorf("%s and %s claim the same flow, so the same port, MAC or address: table %s, %v", owner, other, TableName(mods[n].Table), mods[n])
		}
	}
	for n := range mods {
		owners[mods[n].Key()] = owner
	}
	return nil
}

// ownedRounds lists the rounds of our flows on the switch.
func ownedRounds(ctx context.Context, sender ofclient.Sender) ([]uint16, error) {
	stats, err := ownedFlows(ctx, sender)
	if err != nil {
		return nil, err
	}
	var list []uint16
	for _, s := range stats {
		if r := roundOf(s.Cookie); !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	slices.Sort(list)
	return list, nil
}

func ownedFlows(ctx context.Context, sender ofclient.Sender) ([]ofp.FlowStats, error) {
	return sender.FlowStats(ctx, ofp.FlowStatsRequest{Table: ofp.TableAll, Cookie: ownerBits, CookieMask: ownerMask})
}

// nextRound counts on from the last round that is known, ours or the switch's,
// to one that no flow on the switch has. 0 is for flows written before any replay.
func nextRound(last uint16, used []uint16) uint16 {
	if last == 0 && len(used) > 0 {
		last = used[len(used)-1]
	}
	for {
		last = (last + 1) % rounds
		if last != 0 && !slices.Contains(used, last) {
			return last
		}
	}
}

func deleteRounds(ctx context.Context, sender ofclient.Sender, old []uint16) error {
	if len(old) == 0 {
		return nil
	}
	mods := make([]ofp.FlowMod, len(old))
	for n, r := range old {
		mods[n] = ofp.FlowMod{Command: ofp.FlowDelete, Table: ofp.TableAll, Cookie: cookieFor(r, 0), CookieMask: ownerMask | roundMask}
	}
	return sender.Apply(ctx, []ofclient.Group{{Name: "earlier rounds", Mods: mods}})[0]
}
