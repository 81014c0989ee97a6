package cniserver

import (
	"context"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
)

// keyLock is a lock for each key whose wait ends with a context. The zero value is ready.
type keyLock struct {
	mu   sync.Mutex
	held map[ifstore.Key]chan struct{} // closed when the holder lets go
}

// lock waits for the key and returns what gives it back.
func (l *keyLock) lock(ctx context.Context, key ifstore.Key) (unlock func(), err error) {
	for {
		l.mu.Lock()
		busy, ok := l.held[key]
		if !ok {
			if l.held == nil {
				l.held = map[ifstore.Key]chan struct{}{}
			}
			mine := make(chan struct{})
			l.held[key] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, key)
				l.mu.Unlock()
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
