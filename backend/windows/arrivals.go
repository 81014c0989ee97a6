package windows

import (
	"context"
	"time"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/podnet/async"
)

// arrivals is an async.Watch that reports ports whose vNIC has appeared. While
// any is missing it lists the host's interfaces once a tick, for all of them
// together; the attempts themselves may then be seldom.
type arrivals struct {
	here  *async.Appearance
	waits *vnicWaits
	tick  time.Duration
}

// Next waits until at least one vNIC that was missing is there.
func (a *arrivals) Next(ctx context.Context) ([]string, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if len(a.waits.absent(time.Now())) == 0 {
			select {
			case <-a.waits.came:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		timer.Reset(a.tick)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if arrived := a.look(ctx); len(arrived) > 0 {
			return arrived, nil
		}
	}
}

// look lists once. A listing that fails is the attempts' to tell.
func (a *arrivals) look(ctx context.Context) []string {
	var ports, aliases, arrived []string
	for name := range a.waits.absent(time.Now()) {
		ports, aliases = append(ports, name), append(aliases, hostif.Alias(name))
	}
	for i, err := range a.here.Check(ctx, aliases) {
		if err == nil {
			arrived = append(arrived, ports[i])
		}
	}
	return arrived
}
