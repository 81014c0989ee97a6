package podnet

import (
	"context"

	"github.com/antrea-lite/podnet/ifstore"
)

// Update tells what became of an interface, for code that acts on Pods: policy,
// egress, telemetry.
type Update struct {
	// Interface is the record now. When Removed, it is what was reported last.
	Interface ifstore.Interface
	// Removed: the interface is gone or going; its number and addresses may
	// belong to somebody else at any moment.
	Removed bool
}

// Updates is a list of interfaces followed by changes; see Network.Updates.
type Updates struct {
	watch  *ifstore.Watch
	told   map[ifstore.Key]ifstore.Interface
	listed bool
}

// Updates starts a list-then-watch of interfaces that have a port, waiting or
// ready. The caller must Close it.
func (n *Network) Updates() *Updates {
	return &Updates{watch: n.store.Watch(), told: make(map[ifstore.Key]ifstore.Interface)}
}

// Next returns what changed since the last call. The first call returns at
// once with the whole list, also when that is empty. What happens to one
// interface between two calls is joined into its latest state; a key that was
// removed and added again comes as a removal followed by the new record. Next
// is for one goroutine. Errors: of ctx, and ifstore.ErrWatchClosed.
func (u *Updates) Next(ctx context.Context) ([]Update, error) {
	for {
		changes, err := u.watch.Next(ctx)
		if err != nil {
			return nil, err
		}
		var updates []Update
		for _, c := range changes {
			updates = append(updates, u.update(c)...)
		}
		if len(updates) > 0 || !u.listed {
			u.listed = true
			return updates, nil
		}
	}
}

func (u *Updates) update(c ifstore.Change) []Update {
	key := c.Interface.Key
	old, told := u.told[key]
	visible := !c.Deleted && (c.Interface.State == ifstore.StateWaiting || c.Interface.State == ifstore.StateReady)
	var updates []Update
	if told && (!visible || old.Gen != c.Interface.Gen) {
		delete(u.told, key)
		updates = append(updates, Update{Interface: old, Removed: true})
	}
	if visible {
		u.told[key] = c.Interface
		updates = append(updates, Update{Interface: c.Interface.Clone()})
	}
	return updates
}

// Close ends the watch.
func (u *Updates) Close() { u.watch.Close() }
