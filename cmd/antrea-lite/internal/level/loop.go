// Package level is the loop of everything that keeps a part of the node as it has
// to be, whatever the change was: look, and look again when woken, once in a period,
// and after a failure.
package level

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	retryMin = 200 * time.Millisecond
	retryMax = 5 * time.Second
)

// ErrNotYet: a look had nothing to go by. It is no failure; the next look is when
// the loop is woken or the period ends.
var ErrNotYet = errors.New("nothing is known yet")

// permanent is a fault that only a human can cure.
type permanent struct{ error }

func (e permanent) Unwrap() error { return e.error }

// Permanent marks an error that waiting does not cure: it ends the loop.
func Permanent(err error) error { return permanent{err} }

// IsPermanent reports whether an error was marked by Permanent.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}

// Loop repeats looks. Its methods may be called concurrently.
type Loop struct {
	period time.Duration
	wake   chan struct{} // one token: look again

	mu     sync.Mutex
	err    error // of the last look
	looked bool  // a look has ended, other than by ErrNotYet
}

// New returns a loop that looks once in a period even if nothing wakes it.
func New(period time.Duration) *Loop {
	return &Loop{period: period, wake: make(chan struct{}, 1)}
}

// Wake asks for another look; it never blocks.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Last returns how the last look ended, and whether one has.
func (l *Loop) Last() (err error, looked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err, l.looked
}

// Run looks until ctx ends, which is a success, or a look fails for good. After a
// failure the pauses grow to some seconds. news is told an outcome that differs
// from the one before, so that a fault which lasts is logged once.
func (l *Loop) Run(ctx context.Context, look func(context.Context) error, news func(error)) error {
	pause := retryMin
	for {
		next := l.period
		err := look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, ErrNotYet) {
			if l.remember(err) {
				news(err)
			}
			if IsPermanent(err) {
				return err
			}
			if err != nil {
				next, pause = pause, min(2*pause, retryMax)
			} else {
				pause = retryMin
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-l.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// remember keeps the outcome and reports whether it is news.
func (l *Loop) remember(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	news := !l.looked || (err == nil) != (l.err == nil) || err != nil && err.Error() != l.err.Error()
	l.err, l.looked = err, true
	return news
}
