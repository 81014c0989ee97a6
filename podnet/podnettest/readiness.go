package podnettest

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// WaitingReadiness is a podnet.PortReadiness whose Begin waits for the number,
// as the Linux backend's does.
type WaitingReadiness struct {
	Faults
	bridge *Bridge
	queue  *async.Queue
}

// NewWaitingReadiness returns a readiness backend for the ports of bridge.
func NewWaitingReadiness(bridge *Bridge) *WaitingReadiness {
	return &WaitingReadiness{bridge: bridge, queue: async.NewQueue(async.QueueConfig{})}
}

// Begin implements podnet.PortReadiness.
func (r *WaitingReadiness) Begin(ctx context.Context, key podnet.PortKey) (uint32, bool, error) {
	if err := r.enter(ctx, "Begin", key.Name); err != nil {
		return 0, false, err
	}
	ofport, err := r.bridge.WaitOFPort(ctx, key)
	if err != nil {
		return 0, false, fmt.Errorf("no OpenFlow port number: %w", err)
	}
	return ofport, true, r.leave(ctx, "Begin", key.Name)
}

// Cancel implements podnet.PortReadiness.
func (r *WaitingReadiness) Cancel(key podnet.PortKey) {
	_ = r.enter(context.Background(), "Cancel", key.Name)
	r.queue.Forget(key)
}

// Run implements podnet.PortReadiness.
func (r *WaitingReadiness) Run(ctx context.Context, sink podnet.PortSink) error {
	watch := r.bridge.Watch()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.queue.Run(ctx, sink.Sync) })
	group.Go(func() error {
		for {
			names, err := watch.Next(ctx)
			if err != nil {
				return nil // its context has ended
			}
			for _, name := range names {
				r.queue.Add(podnet.PortKey{Name: name})
			}
		}
	})
	return group.Wait()
}

// NewAsyncReadiness returns an asynchronous readiness backend for the ports of
// bridge; cfg.Watches is set here.
func NewAsyncReadiness(bridge *Bridge, cfg async.Config) (*async.Readiness, error) {
	cfg.Watches = append(cfg.Watches, bridge.Watch())
	return async.New(cfg)
}
