package podnet

import (
	"context"
	"sync"
)

// keyLocks is a lock per key. Waiting for one ends with the context, which
// sync.Mutex cannot do: a caller that runs into its deadline must not stay
// queued and then act on a world that has moved on. A holder that only tried
// can be asked to give way to those who wait.
type keyLocks[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*keyLock
}

type keyLock struct {
	token     chan struct{} // holds the token while the lock is free
	users     int           // holder and waiters; the entry goes with the last
	interrupt func()        // of the holder, if it gives way to waiters
}

func newKeyLocks[K comparable]() *keyLocks[K] {
	return &keyLocks[K]{locks: make(map[K]*keyLock)}
}

// lock waits for the lock of key until ctx ends. unlock must be called once.
func (l *keyLocks[K]) lock(ctx context.Context, key K) (unlock func(), err error) {
	k := l.join(key)
	select {
	case <-k.token: // a free lock is taken even when ctx has ended; the caller will notice
	default:
		l.mu.Lock()
		interrupt := k.interrupt
		l.mu.Unlock()
		if interrupt != nil {
			interrupt()
		}
		select {
		case <-k.token:
		case <-ctx.Done():
			l.leave(key, k)
			return nil, context.Cause(ctx)
		}
	}
	return func() { l.unlock(key, k) }, nil
}

// tryLock takes the lock of key if nobody holds it. interrupt, if not nil, is
// called as soon as somebody waits for the lock, at once if somebody does
// already. It must not block. The holder is expected to give way then.
func (l *keyLocks[K]) tryLock(key K, interrupt func()) (unlock func(), ok bool) {
	k := l.join(key)
	select {
	case <-k.token:
	default:
		l.leave(key, k)
		return nil, false
	}
	if interrupt != nil {
		l.mu.Lock()
		k.interrupt = interrupt
		waiters := k.users > 1
		l.mu.Unlock()
		if waiters {
			interrupt()
		}
	}
	return func() { l.unlock(key, k) }, true
}

func (l *keyLocks[K]) join(key K) *keyLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[key]
	if k == nil {
		k = &keyLock{token: make(chan struct{}, 1)}
		k.token <- struct{}{}
		l.locks[key] = k
	}
	k.users++
	return k
}

func (l *keyLocks[K]) leave(key K, k *keyLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.users--
	if k.users == 0 {
		delete(l.locks, key)
	}
}

func (l *keyLocks[K]) unlock(key K, k *keyLock) {
	l.mu.Lock()
	k.interrupt = nil
	l.mu.Unlock()
	k.token <- struct{}{}
	l.leave(key, k)
}
