package agent

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
)

// recheck is the pause between two looks at flows that differ: a change under
// way counts as a difference, and is over by then.
const recheck = time.Second

// Outcomes of an audit, as the metric names them.
const (
	auditClean    = "clean"
	auditRepaired = "repaired"
	auditFailed   = "failed"
)

// audit reads the flows back a period after every new session. A reconnect is
// when changes get lost whose outcome nobody knows; if any did in spite of the
// replay, everything is written again.
func (a *agent) audit(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.ofWake:
		}
		timer := time.NewTimer(time.Duration(a.conf.SyncPeriod))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		outcome, err := a.auditOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		a.metrics.Audit(outcome)
		switch outcome {
		case auditRepaired:
			klog.FromContext(ctx).Error(nil, "The switch did not have the flows it should have; all were written again")
		case auditFailed:
			klog.FromContext(ctx).Error(err, "The flows could not be read back")
		}
	}
}

func (a *agent) auditOnce(ctx context.Context) (outcome string, err error) {
	for range 2 {
		missing, stale, err := a.flows.Audit(ctx, a.readyInterfaces())
		if err != nil {
			return auditFailed, err
		}
		if missing+stale == 0 {
			return auditClean, nil
		}
		klog.FromContext(ctx).Info("Flows differ", "missing", missing, "stale", stale)
		select {
		case <-ctx.Done():
			return auditFailed, ctx.Err()
		case <-time.After(recheck):
		}
	}
	err = a.net.Replay(ctx, func(ctx context.Context, ifaces []ifstore.Interface) error {
		return a.flows.Replay(ctx, a.of, ifaces)
	})
	if err != nil {
		return auditFailed, err
	}
	return auditRepaired, nil
}

func (a *agent) readyInterfaces() (ready []ifstore.Interface) {
	for _, i := range a.net.Interfaces() {
		if i.State == ifstore.StateReady {
			ready = append(ready, i)
		}
	}
	return ready
}

// wakeOnReady tells of a new OpenFlow session, too.
func wakeOnReady(o ofclient.Observer, token chan struct{}) ofclient.Observer {
	inner := o.Connected
	o.Connected = func(connected, ready bool) {
		inner(connected, ready)
		if ready {
			wake(token)
		}
	}
	return o
}
