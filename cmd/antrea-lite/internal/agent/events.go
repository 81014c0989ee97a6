package agent

import (
	"context"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/metrics"
	"github.com/antrea-lite/podnet/podnet"
)

// keptEvents is how many of the latest events the agent can be asked for.
const keptEvents = 1000

// podEvents is where events of Pods go: into the log, and into a list that
// `antrea-lite events` shows. It implements podnet.Events.
type podEvents struct {
	queue   *podnet.EventQueue
	metrics *metrics.Metrics

	mu     sync.Mutex
	latest []podnet.Event // the oldest first
}

func newPodEvents(m *metrics.Metrics) *podEvents {
	e := &podEvents{queue: podnet.NewEventQueue(0), metrics: m}
	m.Counter("pod_events_dropped_total", "Events for Pods that were dropped because too many waited.", func() float64 { return float64(e.queue.Dropped()) })
	return e
}

// Event implements podnet.Events.
func (e *podEvents) Event(ctx context.Context, event podnet.Event) {
	e.metrics.Event(event)
	e.queue.Event(ctx, event)
}

// Run takes the events out of the queue until ctx ends.
func (e *podEvents) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	for {
		event, err := e.queue.Next(ctx)
		if err != nil {
			return nil
		}
		logger.Info("Pod event", "type", event.Type, "pod", event.Pod.String(), "interface", event.Key.String(), "message", event.Message)
		e.keep(event)
	}
}

func (e *podEvents) keep(event podnet.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.latest) >= keptEvents {
		e.latest = slices.Delete(e.latest, 0, len(e.latest)-keptEvents+1)
	}
	e.latest = append(e.latest, event)
}

// list returns the latest events, the oldest first.
func (e *podEvents) list() []podnet.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.latest)
}
