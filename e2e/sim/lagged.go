package sim

import (
	"context"
	"sync"
	"time"
)

// lagged runs functions one after the other, each a while after it was given:
// the way of messages from one process to another.
type lagged struct {
	mu     sync.Mutex
	queue  []parcel
	signal chan struct{}
}

type parcel struct {
	due time.Time
	fn  func()
}

func newLagged() *lagged { return &lagged{signal: make(chan struct{}, 1)} }

func (l *lagged) put(delay time.Duration, fn func()) {
	l.mu.Lock()
	l.queue = append(l.queue, parcel{time.Now().Add(delay), fn})
	l.mu.Unlock()
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

func (l *lagged) run(ctx context.Context) {
	for {
		l.mu.Lock()
		var next parcel
		if len(l.queue) > 0 {
			next, l.queue = l.queue[0], l.queue[1:]
		}
		l.mu.Unlock()
		if next.fn == nil {
			select {
			case <-l.signal:
			case <-ctx.Done():
				return
			}
			continue
		}
		if wait := time.Until(next.due); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
		next.fn()
	}
}
