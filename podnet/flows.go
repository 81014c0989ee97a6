package podnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// move is an interface whose flows shall stand on a number.
type move struct {
	iface  ifstore.Interface // the record as it is
	ofport uint32            // the number it shall have

	others []uint32 // numbers under which flows of it may stand besides
	before bool     // flows of it may have stood on ofport already
	sent   bool     // prepare came as far as letting them be sent
}

// put makes flows stand on the numbers of moves: one joined installation for
// the interfaces that have none elsewhere, one replacement each for the others.
// One result per move. A share of the replay lock and the locks of the
// containers in held are held.
func (n *Network) put(ctx context.Context, moves []move, held map[string]bool) []error {
	errs := make([]error, len(moves))
	n.unmark(ctx, moves)
	var fresh []int // indexes of moves that are plain installations
	for i := range moves {
		m := &moves[i]
		if errs[i] = n.prepare(ctx, m, held); errs[i] != nil {
			continue
		}
		if len(m.others) == 0 {
			fresh = append(fresh, i)
		} else {
			if err := n.replace(ctx, m); err != nil {
				errs[i] = flowsError{err}
			}
		}
	}
	if len(fresh) > 0 {
		records := make([]ifstore.Interface, len(fresh))
		for f, i := range fresh {
			records[f] = moves[i].iface
		}
		for f, err := range complete(n.cfg.Flows.Install(ctx, records), len(records)) {
			if err != nil {
				errs[fresh[f]] = flowsError{err}
			}
		}
	}
	for i, m := range moves {
		if errs[i] == nil {
			errs[i] = n.confirm(ctx, m.iface.Key, m.ofport)
		} else {
			n.refused(m, errs[i])
		}
	}
	return errs
}

// unmark notes in the rows of all moves at once that flows are about to be
// sent: changes that come together share one transaction. prepare repeats
// what fails here, one by one, and has the errors.
func (n *Network) unmark(ctx context.Context, moves []move) {
	var all sync.WaitGroup
	for _, m := range moves {
		if len(moves) > 1 && n.trackOf(m.iface.Key).marked == string(ifstore.StateWaiting) {
			all.Go(func() { _ = n.mark(ctx, m.iface, "") })
		}
	}
	all.Wait()
}

// prepare notes that flows are about to be sent, before they are: in the
// port's row, where a restart finds it, and in the record.
func (n *Network) prepare(ctx context.Context, m *move, held map[string]bool) error {
	if err := n.evict(ctx, m.iface.Key, m.ofport, held); err != nil {
		return err
	}
	if n.trackOf(m.iface.Key).marked == string(ifstore.StateWaiting) {
		if err := n.mark(ctx, m.iface, ""); err != nil {
			return err
		}
	}
	n.tracked(m.iface.Key, func(t *track) {
		m.others = nil
		for _, p := range t.standing {
			if p == m.ofport {
				m.before = true
			} else {
				m.others = append(m.others, p)
			}
		}
		t.mayStand(m.ofport)
		m.sent = true
		if t.numbered.IsZero() {
			t.numbered = time.Now()
		}
	})
	iface, err := n.setWaiting(m.iface.Key, m.ofport, why{fmt.Sprintf("the switch to confirm the flows for OpenFlow port %d", m.ofport), CauseFlows})
	m.iface = iface
	return err
}

// replace moves flows that stand, or may stand, under other numbers.
func (n *Network) replace(ctx context.Context, m *move) error {
	old := m.iface
	old.OFPort = m.others[0]
	if err := n.cfg.Flows.Replace(ctx, old, m.iface); err != nil {
		return err
	}
	n.tracked(m.iface.Key, func(t *track) { t.isGone(old.OFPort) })
	m.before = true // from here on an error is one of what follows
	// More than one only after moves whose outcome is unknown.
	return n.uninstall(ctx, m.iface, m.others[1:])
}

// refused notes that a move failed. What prepare wrote down is taken back only
// when the switch surely did not apply the change; an error that leaves it open
// counts as applied, and the next attempt covers every number that is noted.
func (n *Network) refused(m move, err error) {
	ofport := m.iface.OFPort
	if m.sent && !m.before && notSent(err) {
		n.tracked(m.iface.Key, func(t *track) { t.isGone(m.ofport) })
		ofport = 0
		if len(m.others) > 0 {
			ofport = m.others[0]
		}
	}
	cause := whyOf(err)
	if errors.Is(err, context.Canceled) {
		cause = why{m.iface.Waiting, CauseFlows} // an attempt that gave way says nothing about the port
	}
	if m.sent || !errors.Is(err, ErrBusy) {
		// An error means that the record is going away; then nobody reads the cause.
		_, _ = n.setWaiting(m.iface.Key, ofport, cause)
	}
}

// uninstall removes the flows of iface from the given numbers.
func (n *Network) uninstall(ctx context.Context, iface ifstore.Interface, numbers []uint32) error {
	if len(numbers) == 0 {
		return nil
	}
	records := make([]ifstore.Interface, len(numbers))
	for i, ofport := range numbers {
		records[i] = iface
		records[i].OFPort = ofport
	}
	errs := complete(n.cfg.Flows.Uninstall(ctx, records), len(records))
	n.tracked(iface.Key, func(t *track) {
		for i, err := range errs {
			if err == nil {
				t.isGone(numbers[i])
			}
		}
	})
	return join(errs...)
}

// complete makes sure that there is one result per interface: a missing one is
// no success.
func complete(errs []error, want int) []error {
	if len(errs) == want {
		return errs
	}
	err := fmt.Errorf("%w: %d results for %d interfaces", ErrOutcomeUnknown, len(errs), want)
	full := make([]error, want)
	for i := range full {
		full[i] = err
	}
	return full
}

// withdraw removes all flows of an interface that stays. The container's lock
// and a share of the replay lock are held.
func (n *Network) withdraw(ctx context.Context, iface ifstore.Interface, cause why) error {
	// Not ready from now on, whether the flows can be removed now or later.
	if _, err := n.setWaiting(iface.Key, iface.OFPort, cause); err != nil {
		return err
	}
	if err := n.uninstall(ctx, iface, n.trackOf(iface.Key).standing); err != nil {
		return err
	}
	_, err := n.setWaiting(iface.Key, 0, cause)
	return err
}

// clearFlows removes all flows of an interface that goes away. Nothing is sent
// when nothing can stand. The container's lock is held.
func (n *Network) clearFlows(ctx context.Context, key ifstore.Key) error {
	if err := n.awaitReplay(ctx, key); err != nil {
		return err
	}
	if len(n.trackOf(key).standing) == 0 {
		return nil
	}
	return n.underReplay(ctx, func(ctx context.Context) error {
		iface, ok := n.store.Get(key)
		if !ok {
			return nil
		}
		if err := n.uninstall(ctx, iface, n.trackOf(key).standing); err != nil {
			return err
		}
		_, err := n.store.Update(key, "", func(i *ifstore.Interface) error { i.OFPort = 0; return nil })
		return err
	})
}

// awaitReplay waits for the first replay of this process when flows of an
// earlier one may stand under a number that nobody remembers.
func (n *Network) awaitReplay(ctx context.Context, key ifstore.Key) error {
	for {
		n.mu.Lock()
		t, replay := n.tracks[key], n.newReplay
		unknown := t != nil && t.unknown
		n.mu.Unlock()
		if !unknown {
			return nil
		}
		select {
		case <-replay:
		case <-ctx.Done():
			return fmt.Errorf("%w: flows of an earlier run may stand until the first replay: %w", ErrNotConnected, context.Cause(ctx))
		}
	}
}
