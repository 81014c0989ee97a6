package async

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/podnet"
)

// QueueConfig configures a Queue. The zero value is useful.
type QueueConfig struct {
	// Workers is how many batches are worked on at the same moment, so that
	// one that waits for a slow switch does not hold up the rest. 0: 4.
	Workers int
	// MaxBatch is the most keys handed to one call. 0: 64.
	MaxBatch int
	// MinRetry is the delay after the first failure of a key; it doubles with
	// each further one up to MaxRetry. It is short because the usual first
	// failure is a lock held for a moment by the very Add. 0: 25 ms.
	MinRetry time.Duration
	// MaxRetry bounds the delay. 0: 5 s.
	MaxRetry time.Duration
	// MaxExternalRetry bounds the delay when Open vSwitch itself refuses the
	// port (*podnet.PortError): asking more often does not help. 0: 1 min.
	MaxExternalRetry time.Duration
}

func (c QueueConfig) withDefaults() QueueConfig {
	setDefault(&c.Workers, 4)
	setDefault(&c.MaxBatch, 64)
	setDefault(&c.MinRetry, 25*time.Millisecond)
	setDefault(&c.MaxRetry, 5*time.Second)
	setDefault(&c.MaxExternalRetry, time.Minute)
	return c
}

func setDefault[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// Queue holds ports that somebody has to look at. A key that is added while
// it waits is held once; one added while it is being worked on is worked on
// again afterwards. All methods may be called concurrently, before Run too.
type Queue struct {
	cfg      QueueConfig
	internal workqueue.TypedRateLimiter[podnet.PortKey]
	external workqueue.TypedRateLimiter[podnet.PortKey]

	mu    sync.Mutex
	queue workqueue.TypedDelayingInterface[podnet.PortKey] // nil outside Run
	early map[podnet.PortKey]time.Time                     // added outside Run: when due
}

// NewQueue returns an empty queue. It starts nothing: goroutines belong to Run.
func NewQueue(cfg QueueConfig) *Queue {
	cfg = cfg.withDefaults()
	return &Queue{
		cfg:      cfg,
		internal: workqueue.NewTypedItemExponentialFailureRateLimiter[podnet.PortKey](cfg.MinRetry, cfg.MaxRetry),
		external: workqueue.NewTypedItemExponentialFailureRateLimiter[podnet.PortKey](cfg.MinRetry, cfg.MaxExternalRetry),
		early:    make(map[podnet.PortKey]time.Time),
	}
}

// Add asks for keys to be looked at now. It forgets their earlier failures: an
// event is a reason to hope.
func (q *Queue) Add(keys ...podnet.PortKey) {
	for _, key := range keys {
		q.Forget(key)
		q.AddAfter(key, 0)
	}
}

// AddAfter asks for key to be looked at once delay has passed.
func (q *Queue) AddAfter(key podnet.PortKey, delay time.Duration) {
	q.mu.Lock()
	queue := q.queue
	if queue == nil {
		due := time.Now().Add(delay)
		if old, ok := q.early[key]; !ok || due.Before(old) {
			q.early[key] = due
		}
	}
	q.mu.Unlock()
	if queue != nil { // outside the lock: the queue's own channel may be full for a moment
		queue.AddAfter(key, delay)
	}
}

// Forget clears the failures counted for key.
func (q *Queue) Forget(key podnet.PortKey) {
	q.internal.Forget(key)
	q.external.Forget(key)
}

// Run hands batches of keys to sync until ctx ends, then returns nil once
// every call has returned. sync gives one result per key; a key with an error
// comes again after a back-off, for ever. It must not be called twice at the
// same time.
func (q *Queue) Run(ctx context.Context, sync func(context.Context, []podnet.PortKey) []error) error {
	queue := q.open(ctx)
	defer q.close()
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()

	// A slot is taken before the keys are: whatever arrives while all workers
	// are busy joins the next batch.
	slots := make(chan struct{}, q.cfg.Workers)
	for {
		slots <- struct{}{}
		batch := q.next(queue)
		if batch == nil {
			break
		}
		go func() {
			defer func() { <-slots }()
			q.work(ctx, queue, batch, sync)
		}()
	}
	for range q.cfg.Workers - 1 { // this goroutine holds one slot itself
		slots <- struct{}{}
	}
	return nil
}

// open makes the running queue and moves what was added early into it.
func (q *Queue) open(ctx context.Context) workqueue.TypedDelayingInterface[podnet.PortKey] {
	logger := klog.FromContext(ctx)
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[podnet.PortKey]{Logger: &logger})
	q.mu.Lock()
	early := q.early
	q.early = make(map[podnet.PortKey]time.Time)
	q.queue = queue
	q.mu.Unlock()
	for key, due := range early {
		queue.AddAfter(key, time.Until(due))
	}
	return queue
}

func (q *Queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue.ShutDown()
	q.queue = nil
}

// next waits for a key and takes all that wait with it; nil when the queue has
// been shut down. Only Run calls it: with a single reader a length that is not
// zero means that Get does not block.
func (q *Queue) next(queue workqueue.TypedDelayingInterface[podnet.PortKey]) []podnet.PortKey {
	var batch []podnet.PortKey
	for len(batch) == 0 || (len(batch) < q.cfg.MaxBatch && queue.Len() > 0) {
		key, down := queue.Get()
		if down {
			break
		}
		batch = append(batch, key)
	}
	return batch
}

func (q *Queue) work(ctx context.Context, queue workqueue.TypedDelayingInterface[podnet.PortKey], batch []podnet.PortKey,
	sync func(context.Context, []podnet.PortKey) []error) {
	logger := klog.FromContext(ctx)
	if ctx.Err() != nil {
		return // the queue is shut down; nothing is remembered beyond Run
	}
	errs := sync(ctx, batch)
	for i, key := range batch {
		if i >= len(errs) || errs[i] == nil {
			q.Forget(key)
		} else {
			delay := q.delay(key, errs[i])
			logger.V(4).Info("Port is not settled, it will be looked at again", "port", key.Name, "gen", key.Gen, "delay", delay, "reason", errs[i].Error())
			queue.AddAfter(key, delay)
		}
		queue.Done(key)
	}
}

// delay counts the failure. Both limiters count it, so that a change of the
// cause does not start from the shortest delay.
func (q *Queue) delay(key podnet.PortKey, err error) time.Duration {
	internal, external := q.internal.When(key), q.external.When(key)
	if portErr := (*podnet.PortError)(nil); errors.As(err, &portErr) {
		return external
	}
	return internal
}
