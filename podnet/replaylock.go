package podnet

import (
	"context"
	"errors"
	"sync"
)

// errReplay ends the context of those who share the replay lock when a replay wants it.
var errReplay = errors.New("a replay of all flows begins")

// replayLock is shared by everyone who changes flows and held alone by a
// replay. A replay does not wait for the sharers to finish: it ends their
// contexts. They may be waiting for a session that only this replay can make
// ready, and a bundle in flight on a dead session must not hold up the next
// one. All waiting ends with the caller's context.
type replayLock struct {
	mu      sync.Mutex
	sharers map[*sharer]struct{}
	alone   bool
	waiting int           // replays that want the lock; newcomers let them go first
	changed chan struct{} // closed and replaced whenever the fields above change
}

type sharer struct{ cancel context.CancelCauseFunc }

func newReplayLock() *replayLock {
	return &replayLock{sharers: make(map[*sharer]struct{}), changed: make(chan struct{})}
}

// share takes a share. The returned context ends early with errReplay as its
// cause when a replay wants the lock.
func (l *replayLock) share(ctx context.Context) (shared context.Context, release func(), err error) {
	shared, cancel := context.WithCancelCause(ctx)
	s := &sharer{cancel: cancel}
	if err := l.wait(ctx, func() bool {
		if l.alone || l.waiting > 0 {
			return false
		}
		l.sharers[s] = struct{}{}
		return true
	}); err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return shared, func() {
		cancel(nil)
		l.change(func() { delete(l.sharers, s) })
	}, nil
}

// exclude takes the lock alone.
func (l *replayLock) exclude(ctx context.Context) (release func(), err error) {
	l.change(func() {
		l.waiting++
		for s := range l.sharers {
			s.cancel(errReplay)
		}
	})
	defer l.change(func() { l.waiting-- })
	if err := l.wait(ctx, func() bool {
		if l.alone || len(l.sharers) > 0 {
			return false
		}
		l.alone = true
		return true
	}); err != nil {
		return nil, err
	}
	return func() { l.change(func() { l.alone = false }) }, nil
}

// wait calls take under the mutex, after every change, until it succeeds.
func (l *replayLock) wait(ctx context.Context, take func() bool) error {
	for {
		l.mu.Lock()
		taken, changed := take(), l.changed
		l.mu.Unlock()
		if taken {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *replayLock) change(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	close(l.changed)
	l.changed = make(chan struct{})
}
