package podnet

import (
	"context"
	"fmt"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
)

// Replay hands fn every interface whose flows should stand, with the numbers
// that its port has now, while nobody else changes flows. Call it for every new
// OpenFlow session before the session serves anything else. When fn returns nil
// the switch must have the flows of these interfaces and of no others of this
// agent; they are ready from then on. Interfaces whose port has no number now
// are not among them: they wait, and Sync sees to them.
//
// Operations that wait for a session at that moment are interrupted and begin
// their flow changes anew after the replay.
func (n *Network) Replay(ctx context.Context, fn func(ctx context.Context, ifaces []ifstore.Interface) error) error {
	// A replay of a store that has not been read yet would delete the flows of every Pod.
	if err := n.ensureReconciled(ctx); err != nil {
		return fmt.Errorf("replay of flows: %w", err)
	}
	release, err := n.replay.exclude(ctx)
	if err != nil {
		return fmt.Errorf("replay of flows: %w", err)
	}
	defer release()
	plan, err := n.planReplay(ctx)
	if err != nil {
		return fmt.Errorf("replay of flows: %w", err)
	}
	if err := fn(ctx, plan.stand); err != nil {
		return fmt.Errorf("replay of flows of %d interfaces: %w", len(plan.stand), err)
	}
	for _, iface := range plan.stand {
		// An error means that its Delete began meanwhile; that one removes the flows.
		_ = n.confirm(ctx, iface.Key, iface.OFPort)
	}
	for _, lost := range plan.lost {
		n.tracked(lost.iface.Key, func(t *track) { t.standing = nil })
		_, _ = n.setWaiting(lost.iface.Key, 0, lost.cause)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.tracks {
		t.unknown = false
	}
	n.replayed = true
	close(n.newReplay)
	n.newReplay = make(chan struct{})
	return nil
}

type replayPlan struct {
	stand []ifstore.Interface
	lost  []lostPort
}

// lostPort is an interface whose flows cannot stand now.
type lostPort struct {
	iface ifstore.Interface
	cause why
}

// planReplay compares the store with one list of all ports. The replay lock is held.
func (n *Network) planReplay(ctx context.Context) (replayPlan, error) {
	ports, err := n.cfg.Bridge.Ports(ctx)
	if err != nil {
		return replayPlan{}, err
	}
	byKey := make(map[PortKey]Port, len(ports))
	for _, p := range ports {
		byKey[p.PortKey] = p
	}
	var plan replayPlan
	taken := make(map[uint32]ifstore.Key)
	for _, iface := range n.store.List() {
		if !n.dueInReplay(iface) {
			continue
		}
		ofport, err := n.replayNumber(iface, byKey)
		if other, ok := taken[ofport]; ok && err == nil {
			err = fmt.Errorf("%w: OVSDB gives OpenFlow port %d to %s too", ErrNotListed, ofport, other)
		}
		switch {
		case err == nil:
			if iface, ok := n.stand(iface.Key, ofport); ok {
				taken[ofport] = iface.Key
				plan.stand = append(plan.stand, iface)
			}
		case iface.OFPort != 0:
			plan.lost = append(plan.lost, lostPort{iface: iface, cause: whyOf(err)})
		}
	}
	return plan, nil
}

// dueInReplay reports whether the flows of iface should stand if its port has
// a number: they did before, or it waits and nobody else has promised to
// decide when they may go in.
func (n *Network) dueInReplay(iface ifstore.Interface) bool {
	switch iface.State {
	case ifstore.StateReady:
		return true
	case ifstore.StateWaiting:
		t := n.trackOf(iface.Key)
		return iface.OFPort != 0 || t.restored && !t.promised && t.marked != string(ifstore.StateWaiting)
	}
	return false
}

func (n *Network) replayNumber(iface ifstore.Interface, ports map[PortKey]Port) (uint32, error) {
	port, ok := ports[portKey(iface)]
	if !ok {
		return 0, fmt.Errorf("port %s: %w", iface.Name, ErrNoPort)
	}
	if port.OFPort < minOFPort || port.OFPort > maxOFPort {
		return 0, noNumber(port)
	}
	ofport := uint32(port.OFPort)
	if n.cfg.Ports != nil {
		// A port that is not listed is left to OVSDB here: withholding its flows would help nobody.
		if listed, ok := n.cfg.Ports.PortState(iface.Name); ok && listed != ofport {
			return 0, fmt.Errorf("port %s: %w: OVSDB says OpenFlow port %d, the OpenFlow session says %d", iface.Name, ErrNotListed, ofport, listed)
		}
	}
	return ofport, nil
}

// stand notes that flows of key are about to be sent. Noted first and then
// compared with the state: a Delete sets the state first and then looks here,
// so one of the two sees the other.
func (n *Network) stand(key ifstore.Key, ofport uint32) (ifstore.Interface, bool) {
	before := false
	n.tracked(key, func(t *track) {
		before = slices.Contains(t.standing, ofport)
		t.mayStand(ofport)
	})
	iface, err := n.store.Update(key, "", func(i *ifstore.Interface) error {
		if i.State == ifstore.StateWithdrawing {
			return ErrOvertaken
		}
		i.OFPort = ofport
		return nil
	})
	if err != nil && !before {
		n.tracked(key, func(t *track) { t.isGone(ofport) })
	}
	return iface, err == nil
}

// noNumber is the error for a port whose row has no number that can be used.
func noNumber(p Port) error {
	if p.OFPort < 0 || p.Error != "" {
		return &PortError{Name: p.Name, OFPort: p.OFPort, Text: p.Error}
	}
	return fmt.Errorf("port %s: %w", p.Name, ErrNoNumber)
}
