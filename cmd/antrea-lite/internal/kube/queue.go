package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	retryMin = 500 * time.Millisecond
	retryMax = 30 * time.Second
	// workers write at the same moment, so that one slow answer holds up few.
	workers = 4
)

// queue holds keys that somebody has to look at, each once, before Run as well:
// client-go's queue starts a goroutine when it is made.
type queue[T comparable] struct {
	mu    sync.Mutex
	inner workqueue.TypedRateLimitingInterface[T] // nil outside Run
	early map[T]struct{}                          // added outside Run
}

func newQueue[T comparable]() *queue[T] { return &queue[T]{early: map[T]struct{}{}} }

// add asks for a look at key; it never blocks.
func (q *queue[T]) add(key T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inner == nil {
		q.early[key] = struct{}{}
	} else {
		q.inner.Add(key)
	}
}

// run hands keys to do until ctx ends. A key whose do failed comes again after a
// pause that grows.
func (q *queue[T]) run(ctx context.Context, do func(context.Context, T) error) error {
	inner := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[T](retryMin, retryMax))
	q.mu.Lock()
	q.inner = inner
	for key := range q.early {
		inner.Add(key)
	}
	clear(q.early)
	q.mu.Unlock()
	defer context.AfterFunc(ctx, inner.ShutDown)()

	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				key, down := inner.Get()
				if down {
					return
				}
				if err := do(ctx, key); err != nil {
					inner.AddRateLimited(key)
				} else {
					inner.Forget(key)
				}
				inner.Done(key)
			}
		})
	}
	group.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inner = nil
	return nil
}
