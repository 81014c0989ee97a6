package linux

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// Run hands every port that a watch names to sink, and those whose Sync failed
// again after a pause, until ctx ends (nil) or a watch fails for another
// reason. The watches are never held up: a queue stands between them and the
// sink, in which a name waits once however often it changes.
func (r *Readiness) Run(ctx context.Context, sink podnet.PortSink) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range r.cfg.Watches {
		group.Go(func() error { return r.read(ctx, w) })
	}
	group.Go(func() error {
		return r.queue.Run(ctx, func(ctx context.Context, keys []podnet.PortKey) []error {
			return sink.Sync(ctx, r.current(keys))
		})
	})
	return group.Wait()
}

// read moves names from a watch to the queue.
func (r *Readiness) read(ctx context.Context, w async.Watch) error {
	for {
		names, err := w.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("port watch ended: %w", err)
		}
		for _, name := range names {
			r.queue.Add(podnet.PortKey{Name: name})
		}
	}
}

// current gives each name the Gen of its latest Begin at the moment of the
// call, not of the event: a retry must not speak of an earlier life. Names that
// nobody began since the start stay without, for whatever life they have.
func (r *Readiness) current(names []podnet.PortKey) []podnet.PortKey {
	keys := make([]podnet.PortKey, len(names))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range names {
		keys[i] = podnet.PortKey{Name: n.Name, Gen: r.begun[n.Name]}
	}
	return keys
}
