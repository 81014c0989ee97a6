package podnet

import (
	"container/list"
	"context"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
)

// Events receives what the owners of Pods should see. *EventQueue implements it.
type Events interface {
	// Event takes an event. It must not block and must not call the Network.
	// Events of one interface come in the order in which things happened.
	Event(ctx context.Context, e Event)
}

// defaultEvents is the size of an EventQueue that names none: twice the Pods of
// a large node.
const defaultEvents = 1024

// EventQueue holds events until a consumer, which may be slow or away, takes
// them: an API server, a log. Only the latest event of an interface is kept; it
// takes the place of the one before it. When the queue is full the event that
// has waited longest is dropped. All methods may be called concurrently; Next is
// for one consumer.
type EventQueue struct {
	size int
	more chan struct{} // one token: something was added

	mu      sync.Mutex
	order   list.List // of Event, the longest waiting first
	byKey   map[ifstore.Key]*list.Element
	dropped uint64
}

var _ Events = (*EventQueue)(nil)

// NewEventQueue returns a queue for size events; 0: 1024.
func NewEventQueue(size int) *EventQueue {
	if size <= 0 {
		size = defaultEvents
	}
	return &EventQueue{size: size, more: make(chan struct{}, 1), byKey: make(map[ifstore.Key]*list.Element)}
}

// Event implements Events. It never blocks.
func (q *EventQueue) Event(_ context.Context, e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.byKey[e.Key]; at != nil {
		at.Value = e
		return
	}
	if q.order.Len() >= q.size {
		q.take()
		q.dropped++
	}
	q.byKey[e.Key] = q.order.PushBack(e)
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// Next waits for an event and removes it from the queue. The error is the cause of ctx's end.
func (q *EventQueue) Next(ctx context.Context) (Event, error) {
	for ctx.Err() == nil {
		if e, ok := q.first(); ok {
			return e, nil
		}
		select {
		case <-q.more:
		case <-ctx.Done():
		}
	}
	return Event{}, context.Cause(ctx)
}

func (q *EventQueue) first() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.order.Len() == 0 {
		return Event{}, false
	}
	return q.take(), true
}

// take removes the longest waiting event; there is one.
func (q *EventQueue) take() Event {
	e := q.order.Remove(q.order.Front()).(Event)
	delete(q.byKey, e.Key)
	return e
}

// Dropped returns how many events were dropped because the queue was full. An
// event that a later one of the same interface replaced is none of them.
func (q *EventQueue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
