package podnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
)

// Sync implements PortSink. For each key it looks at what is true now and makes
// the flows equal to it: installed on the number the port has, moved when the
// number changed, withdrawn when it has none. It never waits for a lock of a
// container: an operation that holds it may be waiting for this very number.
// And it gives way as soon as somebody else wants one of the containers: it may
// itself be waiting for a switch that is away.
// Keys of other lives of a name, of ports that nobody knows and of interfaces
// that go away need nothing: nil.
func (n *Network) Sync(ctx context.Context, keys []PortKey) []error {
	work, giveWay := context.WithCancel(ctx)
	defer giveWay()
	b := &syncBatch{n: n, giveWay: giveWay, errs: make([]error, len(keys)), held: make(map[string]bool), at: make(map[ifstore.Key][]int)}
	defer b.unlock()
	for i, key := range keys {
		b.errs[i] = b.join(i, key)
	}
	if len(b.at) == 0 {
		return b.errs
	}
	err := n.underReplay(work, b.settle)
	if work.Err() != nil && ctx.Err() == nil {
		// What was under way has failed with the context; the cause of the interface is not that.
		err = fmt.Errorf("%w: another operation of one of the containers came first", ErrBusy)
		for _, at := range b.at {
			if b.errs[at[0]] != nil && errors.Is(b.errs[at[0]], context.Canceled) {
				b.errs[at[0]] = nil
			}
		}
	}
	if err != nil {
		for key, at := range b.at {
			if b.errs[at[0]] == nil {
				b.fail(key, err)
			}
		}
	}
	for key, at := range b.at {
		n.settled(ctx, key, b.errs[at[0]])
	}
	return b.errs
}

// settled ends a look at an interface. The container's lock is held.
func (n *Network) settled(ctx context.Context, key ifstore.Key, err error) {
	announce := false
	n.tracked(key, func(t *track) {
		announce, t.announce = t.announce, false
		if err != nil && !t.promised && !t.waitSince.IsZero() {
			t.attempts++ // of promised ones the backend tells, which makes more attempts than those that come here
		}
	})
	if iface, ok := n.store.Get(key); ok && announce {
		n.announce(ctx, iface)
	}
}

// syncBatch is one call of Sync at work.
type syncBatch struct {
	n       *Network
	giveWay context.CancelFunc
	errs    []error               // one per key of the call
	at      map[ifstore.Key][]int // interface -> indexes of the keys that mean it
	held    map[string]bool       // containers whose lock is held
	unlocks []func()
}

func (b *syncBatch) unlock() {
	for _, unlock := range b.unlocks {
		unlock()
	}
}

func (b *syncBatch) fail(key ifstore.Key, err error) {
	for _, i := range b.at[key] {
		b.errs[i] = err
	}
}

// join adds the interface that key means to the batch, if there is anything to
// look at, and takes its container's lock.
func (b *syncBatch) join(i int, key PortKey) error {
	iface, ok := b.n.store.ByName(key.Name)
	if !ok || !means(key, iface) {
		return nil
	}
	if !b.held[iface.ContainerID] {
		unlock, ok := b.n.containers.tryLock(iface.ContainerID, b.giveWay)
		if !ok {
			return fmt.Errorf("%w: container %s of port %s is being worked on", ErrBusy, iface.ContainerID, key.Name)
		}
		b.held[iface.ContainerID] = true
		b.unlocks = append(b.unlocks, unlock)
		// The record may have changed before the lock was ours.
		if iface, ok = b.n.store.ByName(key.Name); !ok || !means(key, iface) || !b.held[iface.ContainerID] {
			return nil
		}
	}
	b.at[iface.Key] = append(b.at[iface.Key], i)
	return nil
}

// means reports whether key stands for that record and the record is one to
// look at.
func means(key PortKey, iface ifstore.Interface) bool {
	return (key.Gen == "" || key.Gen == iface.Gen) &&
		(iface.State == ifstore.StateWaiting || iface.State == ifstore.StateReady)
}

// settle looks at every interface of the batch. It may run again after a
// replay, so it begins from nothing.
func (b *syncBatch) settle(ctx context.Context) error {
	n := b.n
	var moves []move
	var gone []ifstore.Interface
	for _, key := range slices.SortedFunc(maps.Keys(b.at), compareKeys) {
		b.fail(key, nil)
		iface, ok := n.store.Get(key)
		if !ok || iface.State == ifstore.StateWithdrawing {
			continue
		}
		ofport, err := n.number(ctx, portKey(iface))
		switch {
		case err == nil && iface.State == ifstore.StateReady && iface.OFPort == ofport:
			// As it should be.
		case err == nil:
			moves = append(moves, move{iface: iface, ofport: ofport})
		case portGone(err):
			gone = append(gone, iface)
			b.fail(key, err)
		default:
			b.fail(key, err)
			n.noteCause(iface, err)
		}
	}
	// First everything off the numbers that are somebody else's now.
	for _, iface := range gone {
		if err := n.withdraw(ctx, iface, whyOf(b.errs[b.at[iface.Key][0]])); err != nil {
			b.fail(iface.Key, err)
		}
	}
	for i, err := range n.put(ctx, moves, b.held) {
		b.fail(moves[i].iface.Key, err)
	}
	// With an error of the context's the caller finds out whether to run again.
	return ctx.Err()
}

// noteCause keeps what an interface that waits is waiting for.
func (n *Network) noteCause(iface ifstore.Interface, err error) {
	n.tracked(iface.Key, func(t *track) {
		if !t.waitSince.IsZero() {
			t.cause = whyOf(err)
		}
	})
}

func compareKeys(a, b ifstore.Key) int {
	return cmp.Or(cmp.Compare(a.ContainerID, b.ContainerID), cmp.Compare(a.IfName, b.IfName))
}
