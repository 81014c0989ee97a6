package ifstore

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrWatchClosed is returned by Next after Close.
var ErrWatchClosed = errors.New("watch is closed")

// Change tells that an entry differs from what the watch returned before.
type Change struct {
	Interface Interface // the entry now; when Deleted, only its Key
	Deleted   bool
}

// Watch is a list followed by changes. It is level-triggered: what happens to
// an entry between two calls of Next is joined into one Change with the latest
// record, so a slow reader neither blocks the store nor makes it grow. A key
// that was deleted and added again in between appears as one change with
// another Gen. Next is for one goroutine; Close for any.
type Watch struct {
	store  *Store
	signal chan struct{} // holds one token when there may be something to read

	mu     sync.Mutex
	dirty  map[Key]struct{}
	closed bool

	known  map[Key]struct{} // what the reader was told; used by Next only
	listed bool
}

// Watch starts a watch. Its first Next returns every entry of the store.
func (s *Store) Watch() *Watch {
	w := &Watch{
		store:  s,
		signal: make(chan struct{}, 1),
		dirty:  make(map[Key]struct{}),
		known:  make(map[Key]struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.entries {
		w.dirty[k] = struct{}{}
	}
	s.watches[w] = struct{}{}
	return w
}

// Next returns the changes since the last call, by key. The first call returns
// at once, with the whole list, also when that is empty; later ones wait until
// something changed. Errors: of ctx, and ErrWatchClosed.
func (w *Watch) Next(ctx context.Context) ([]Change, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		changes, err := w.take()
		if err != nil {
			return nil, err
		}
		if len(changes) > 0 || !w.listed {
			w.listed = true
			return changes, nil
		}
		select {
		case <-w.signal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the watch and wakes a Next that waits.
func (w *Watch) Close() {
	w.store.mu.Lock()
	delete(w.store.watches, w)
	w.store.mu.Unlock()
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake()
}

func (w *Watch) take() ([]Change, error) {
	w.mu.Lock()
	dirty, closed := w.dirty, w.closed
	w.dirty = make(map[Key]struct{})
	w.mu.Unlock()
	if closed {
		return nil, ErrWatchClosed
	}
	var changes []Change
	for k := range dirty {
		i, ok := w.store.Get(k)
		_, known := w.known[k]
		switch {
		case ok:
			w.known[k] = struct{}{}
			changes = append(changes, Change{Interface: i})
		case known:
			delete(w.known, k)
			changes = append(changes, Change{Interface: Interface{Key: k}, Deleted: true})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return compareKeys(a.Interface.Key, b.Interface.Key) })
	return changes, nil
}

func (w *Watch) wake() {
	select {
	case w.signal <- struct{}{}:
	default: // a token is there already
	}
}

// notify marks key as changed in every watch. The store's lock is held.
func (s *Store) notify(key Key) {
	for w := range s.watches {
		w.mu.Lock()
		w.dirty[key] = struct{}{}
		w.mu.Unlock()
		w.wake()
	}
}
