package linux

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// maxSync bounds how many ports one Sync call gets: enough to join their
// bundles, and not so many that one slow port holds back the news of all.
const maxSync = 64

// Run hands every port that a watch names to sink until ctx ends, and those
// whose Sync failed again after a pause. The watches are never held up: a
// queue stands between them and the sink, in which a name waits once however
// often it changes.
func (r *Readiness) Run(ctx context.Context, sink podnet.PortSink) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](r.cfg.RetryMin, r.cfg.RetryMax)
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	var group sync.WaitGroup
	for _, w := range r.cfg.Watches {
		group.Go(func() { r.feed(ctx, w, queue) })
	}
	group.Go(func() { r.work(ctx, sink, queue) })
	<-ctx.Done()
	queue.ShutDown()
	group.Wait()
	return context.Cause(ctx)
}

// feed moves names from a watch to the queue. A watch that fails is asked
// again: it belongs to a client that reconnects for ever.
func (r *Readiness) feed(ctx context.Context, w NameWatch, queue workqueue.TypedInterface[string]) {
	pause := r.cfg.RetryMin
	for ctx.Err() == nil {
		names, err := w.Next(ctx)
		for _, name := range names {
			queue.Add(name)
		}
		if err == nil {
			pause = r.cfg.RetryMin
			continue
		}
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "A port watch failed; asking it again", "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, r.cfg.RetryMax)
	}
}

// work calls the sink with the ports that wait at the moment, so that their
// changes share bundles and transactions.
func (r *Readiness) work(ctx context.Context, sink podnet.PortSink, queue workqueue.TypedRateLimitingInterface[string]) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		names := []string{name}
		for len(names) < maxSync && queue.Len() > 0 {
			// This is the only reader: an item that Len counts is there.
			if name, shutdown = queue.Get(); shutdown {
				break
			}
			names = append(names, name)
		}
		keys := make([]podnet.PortKey, len(names))
		for i, name := range names {
			keys[i] = r.key(name)
		}
		errs := sink.Sync(ctx, keys)
		for i, name := range names {
			if i < len(errs) && errs[i] != nil && ctx.Err() == nil {
				r.retry(ctx, name, errs[i], queue)
			} else {
				queue.Forget(name)
			}
			queue.Done(name)
		}
	}
}

func (r *Readiness) retry(ctx context.Context, name string, err error, queue workqueue.TypedRateLimitingInterface[string]) {
	logger := klog.FromContext(ctx)
	tries := queue.NumRequeues(name)
	// A lock that is held is no news; a port that keeps failing is, at a falling rate.
	if level := 2; errors.Is(err, podnet.ErrTryAgain) || tries&(tries-1) != 0 {
		logger.V(level).Info("Port will be looked at again", "port", name, "tries", tries+1, "cause", err.Error())
	} else {
		logger.Info("Port will be looked at again", "port", name, "tries", tries+1, "cause", err.Error())
	}
	queue.AddRateLimited(name)
}
