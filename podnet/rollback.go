package podnet

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
)

// takeBack undoes a failed Add, with a deadline of its own: the caller's
// context is usually the reason why it failed. The container stays locked until
// it returns. What is left then is handed to the removals under Run.
func (a *attachment) takeBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.n.cfg.UndoTimeout)
	defer cancel()
	if i, err := a.n.store.Update(a.iface.Key, "", markWithdrawing); err == nil {
		a.iface = i
	}
	err := a.undo.run(ctx)
	if err == nil {
		return nil
	}
	if _, ok := a.n.store.Get(a.iface.Key); !ok {
		a.iface.State, a.iface.OFPort, a.iface.Waiting = ifstore.StateWithdrawing, 0, ""
		a.n.store.Put(a.iface)
		a.n.startTrack(a.iface.Key, track{})
	}
	if a.iface.Gen != "" {
		if markErr := a.n.mark(ctx, a.iface, string(ifstore.StateWithdrawing)); markErr != nil && !errors.Is(markErr, ErrNoPort) {
			err = join(err, markErr)
		}
	}
	a.n.startRemoval(a.iface.Key, err)
	return err
}

// dropPort deletes the port of iface. When the outcome of its AddPort is
// unknown there may be a row whose key nobody learned, and somebody may have
// replaced the row since: either is found by its name and by carrying our marks.
// Left alone, the next Reconcile would take it for an interface.
func (n *Network) dropPort(ctx context.Context, iface ifstore.Interface, search bool) error {
	if iface.Gen != "" {
		_, err := n.cfg.Bridge.OFPort(ctx, portKey(iface))
		if err != nil && !portGone(err) {
			return fmt.Errorf("cannot tell whether port %s is still there: %w", iface.Name, err)
		}
		if search = errors.Is(err, ErrNoPort); !search {
			err := n.cfg.Bridge.DeletePort(ctx, portKey(iface))
			if errors.Is(err, ErrNoPort) {
				return nil
			}
			return err
		}
	}
	if !search || iface.Name == "" {
		return nil
	}
	ports, err := n.cfg.Bridge.Ports(ctx)
	if err != nil {
		return fmt.Errorf("cannot tell whether port %s was made: %w", iface.Name, err)
	}
	for _, p := range ports {
		if p.Name != iface.Name || !IsOurs(n.cfg.Owner, p.ExternalIDs) {
			continue
		}
		if found, err := DecodeExternalIDs(p.ExternalIDs); err != nil || found.Key != iface.Key {
			continue
		}
		if err := n.cfg.Bridge.DeletePort(ctx, p.PortKey); err != nil && !errors.Is(err, ErrNoPort) {
			return err
		}
	}
	return nil
}

// mark writes podnet-state into the port's row, where a restart finds it. ""
// removes it.
func (n *Network) mark(ctx context.Context, iface ifstore.Interface, state string) error {
	if n.trackOf(iface.Key).marked == state {
		return nil
	}
	if err := n.cfg.Bridge.SetExternalIDs(ctx, portKey(iface), map[string]string{idState: state}); err != nil {
		if state == string(ifstore.StateWaiting) && !notSent(err) {
			// It may have been written. Whoever sends flows must take it away first,
			// or a Delete after a restart would believe that none stand.
			n.tracked(iface.Key, func(t *track) { t.marked = state })
		}
		return fmt.Errorf("external_ids:%s=%q of port %s: %w", idState, state, iface.Name, err)
	}
	n.tracked(iface.Key, func(t *track) { t.marked = state })
	return nil
}

// conflict looks for another interface with an address, or with the MAC that
// was asked for, before anything is made. The store says the last word in
// Insert.
func (n *Network) conflict(want ifstore.Interface, mac ifstore.MAC) error {
	for _, a := range want.Addresses {
		if have, ok := n.store.ByIP(a.Prefix.Addr()); ok && have.Key != want.Key {
			return heldByOther(&ifstore.ConflictError{Field: "address", Value: a.Prefix.Addr().String(), Key: want.Key, Holder: have})
		}
	}
	if mac.IsZero() {
		return nil
	}
	for _, have := range n.store.List() {
		if have.MAC == mac && have.VLAN == want.VLAN && have.Key != want.Key {
			return heldByOther(&ifstore.ConflictError{Field: "MAC address", Value: mac.String(), Key: want.Key, Holder: have})
		}
	}
	return nil
}

// heldByOther gives a conflict the sentinel that fits: what an interface that
// is going away holds will be free soon.
func heldByOther(err error) error {
	if conflict := (*ifstore.ConflictError)(nil); errors.As(err, &conflict) && conflict.Holder.State == ifstore.StateWithdrawing {
		return fmt.Errorf("%w: %w", ErrTryAgain, err)
	}
	return fmt.Errorf("%w: %w", ErrBadRequest, err)
}
