package podnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
)

// Reconcile makes the store equal to the bridge. After a start it rebuilds
// every interface from the external_ids of its port, resumes removals that were
// under way, and leaves flows to the first Replay; ports without a usable
// number wait, whatever the readiness backend. Call it again after OVSDB was
// away, and once in a period: it adopts rows that are new or were replaced behind
// its back and looks again at all that is known.
// It runs by itself before the first operation that needs it.
//
// Ports of others are skipped, and so are ports of ours whose marks cannot be
// read; those are logged.
func (n *Network) Reconcile(ctx context.Context) error {
	select {
	case <-n.starting:
	case <-ctx.Done():
		return fmt.Errorf("another reconcile has not ended: %w", context.Cause(ctx))
	}
	again, err := n.reconcileAlone(ctx)
	if err == nil && again {
		// Not with the token in hand: this may wait for a session that only a
		// replay can make ready, and that replay may be waiting for the token.
		n.syncKnown(ctx)
	}
	return err
}

// ensureReconciled runs the first Reconcile if there was none. Before it, a
// Delete would find nothing and report success.
func (n *Network) ensureReconciled(ctx context.Context) error {
	if n.isReconciled() {
		return nil
	}
	select {
	case <-n.starting:
	case <-ctx.Done():
		return fmt.Errorf("%w: the bridge has not been read yet: %w", ErrTryAgain, context.Cause(ctx))
	}
	defer func() { n.starting <- struct{}{} }()
	if n.isReconciled() {
		return nil
	}
	if _, err := n.reconcile(ctx); err != nil {
		return fmt.Errorf("%w: the bridge cannot be read: %w", ErrTryAgain, err)
	}
	return nil
}

// wasMarred reports whether the last Reconcile has told of that port already.
func (n *Network) wasMarred(gen string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.marred[gen]
}

func (n *Network) isReconciled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reconciled
}

// reconcileAlone holds the token, which the caller has taken, while it reads.
func (n *Network) reconcileAlone(ctx context.Context) (again bool, err error) {
	defer func() { n.starting <- struct{}{} }()
	return n.reconcile(ctx)
}

// reconcile reads the bridge. again: it was not the first time, so what is known
// has to be looked at too.
func (n *Network) reconcile(ctx context.Context) (again bool, err error) {
	logger := klog.FromContext(ctx)
	ports, err := n.cfg.Bridge.Ports(ctx)
	if err != nil {
		return false, err
	}
	var unreadable []ifstore.Key
	marred := map[string]bool{}
	restored := 0
	for _, port := range ports {
		if !IsOurs(n.cfg.Owner, port.ExternalIDs) {
			continue
		}
		iface, err := DecodeExternalIDs(port.ExternalIDs)
		if err != nil {
			if marred[port.Gen] = true; !n.wasMarred(port.Gen) {
				logger.Error(err, "A port carries this agent's mark and cannot be read; it is left alone", "port", port.Name)
			}
			if key := keyOf(port.ExternalIDs); validateKey(key) == nil {
				unreadable = append(unreadable, key)
			}
			continue
		}
		iface.Name, iface.Gen = port.Name, port.Gen
		added, err := n.restore(ctx, iface, port)
		if err != nil {
			return false, err
		}
		if added {
			restored++
		}
	}
	n.mu.Lock()
	first := !n.reconciled
	n.reconciled, n.unreadable, n.marred = true, unreadable, marred
	n.mu.Unlock()
	if first {
		logger.Info("Interfaces restored from the bridge", "interfaces", restored, "ports", len(ports))
	}
	return !first, nil
}

// restore puts a port of ours into the store, unless it is there or somebody is
// at work on its container: that operation knows better than a list.
func (n *Network) restore(ctx context.Context, iface ifstore.Interface, port Port) (added bool, err error) {
	have, known := n.store.Get(iface.Key)
	if known && have.Gen == iface.Gen {
		return false, nil
	}
	have.Key = iface.Key // also when nothing is known of it
	unlock, ok := n.lockToRestore(ctx, have)
	if !ok {
		return false, nil
	}
	defer unlock()
	if n.isReconciled() {
		// The list may be older than a Delete that has just ended.
		if _, err := n.cfg.Bridge.OFPort(ctx, portKey(iface)); errors.Is(err, ErrNoPort) {
			return false, nil
		} else if err != nil && !portGone(err) {
			return false, err
		}
	}
	if have, known = n.store.Get(iface.Key); known {
		return false, n.adoptRow(iface, have)
	}
	var resumer Resumer
	t := track{restored: true, asked: time.Now(), marked: port.ExternalIDs[idState]}
	if port.ExternalIDs[idTold] != "" {
		t.noted, t.openWait = iface.Gen, true
	}
	iface.State = ifstore.StateWaiting
	switch {
	case t.marked == string(ifstore.StateWaiting):
		iface.Waiting, t.cause.kind = "an OpenFlow port number", CauseNumber
		resumer, t.promised = n.cfg.Readiness.(Resumer)
		t.openWait = true
		if iface.Created.Before(t.asked) && !iface.Created.IsZero() {
			// Its wait began with the Add. Should it be overdue, a first look comes before the event.
			t.waitSince, t.tellFrom = iface.Created, t.asked.Add(n.cfg.RetryInterval)
		}
	case port.OFPort >= minOFPort && port.OFPort <= maxOFPort:
		iface.OFPort, iface.Waiting = uint32(port.OFPort), "the first replay of flows"
		t.cause.kind = CauseFlows
		t.standing, t.numbered = []uint32{iface.OFPort}, t.asked
	default:
		// It had flows once, or nobody could note that it had none. What made it
		// ready the first time may be needed again.
		err := noNumber(port)
		iface.Waiting, t.cause.kind = err.Error(), CauseOf(err)
		resumer, t.promised = n.cfg.Readiness.(Resumer)
		t.unknown = !n.hasReplayed()
	}
	t.cause.text = iface.Waiting
	if t.waitSince.IsZero() {
		t.waitSince = t.asked
	}
	withdrawing := t.marked == string(ifstore.StateWithdrawing)
	if withdrawing {
		t.promised = false
		iface.State, iface.Waiting = ifstore.StateWithdrawing, ""
	}
	n.startTrack(iface.Key, t)
	n.store.Put(iface)
	if t.promised {
		resumer.Resume([]PortKey{port.PortKey})
	}
	if withdrawing {
		n.startRemoval(iface.Key, errors.New("a removal that an earlier process began"))
	}
	return true, nil
}

// lockToRestore takes the container's lock if nobody has it. For a row that was
// replaced it asks a Sync to give way: the looks of Run and those who reconcile
// may keep the same time, so that one would hold the lock at every try, and what
// it looks for comes with the new row only.
func (n *Network) lockToRestore(ctx context.Context, have ifstore.Interface) (unlock func(), ok bool) {
	if unlock, ok = n.containers.tryLock(have.ContainerID, nil); ok || have.Gen == "" {
		return unlock, ok
	}
	if have.State != ifstore.StateWaiting && have.State != ifstore.StateReady {
		return nil, false
	}
	// Long enough for that; an Add or a Delete is not waited for.
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err := n.containers.lock(soon, have.ContainerID)
	return unlock, err == nil
}

// adoptRow follows a row that was replaced behind our back: same interface,
// other life of the port.
func (n *Network) adoptRow(row, have ifstore.Interface) error {
	if row.Gen == have.Gen || have.State == ifstore.StateWithdrawing || have.Name != row.Name {
		return nil
	}
	if _, err := n.store.Update(have.Key, have.Gen, func(i *ifstore.Interface) error { i.Gen = row.Gen; return nil }); err != nil {
		return err
	}
	if !n.trackOf(have.Key).promised {
		return nil
	}
	// The promise was for the other life. A backend that cannot take up this one
	// leaves it to the looks of Run.
	n.cfg.Readiness.Cancel(portKey(have))
	resumer, ok := n.cfg.Readiness.(Resumer)
	n.tracked(have.Key, func(t *track) { t.promised = ok })
	if ok {
		resumer.Resume([]PortKey{portKey(row)})
	}
	return nil
}

func (n *Network) hasReplayed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replayed
}

// syncKnown looks again at every interface that is not for the readiness
// backend to decide on. Errors are for the next look: each
// is the cause that its interface waits for, or of a moment.
func (n *Network) syncKnown(ctx context.Context) {
	var keys []PortKey
	for _, iface := range n.store.List() {
		if !n.trackOf(iface.Key).promised {
			keys = append(keys, portKey(iface))
		}
	}
	n.Sync(ctx, keys)
}
