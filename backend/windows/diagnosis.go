package windows

import (
	"context"
	"fmt"
	"time"
)

// diagnosis is an async.Watch that asks HNS why vNICs are missing, once in a
// period for all of them, beside the attempts, so that an HNS that hangs holds
// up nobody. It reports ports for which the answer is new.
type diagnosis struct {
	endpoints func(ctx context.Context) ([]Endpoint, error)
	waits     *vnicWaits
}

// Next waits until HNS tells something new about an endpoint whose vNIC is missing.
func (d *diagnosis) Next(ctx context.Context) ([]string, error) {
	tick := time.NewTicker(diagnosePeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if news := d.ask(ctx); len(news) > 0 {
			return news, nil
		}
	}
}

// ask asks about the ports that have waited for a whole period: most vNICs
// need no more than that.
func (d *diagnosis) ask(ctx context.Context) (news []string) {
	now := time.Now()
	var names []string
	for name, since := range d.waits.absent(now) {
		if now.Sub(since) >= diagnosePeriod {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, diagnosePeriod, fmt.Errorf("no answer in %v", diagnosePeriod))
	defer cancel()
	endpoints, err := d.endpoints(ctx)
	states := make(map[string]Endpoint, len(endpoints))
	for _, e := range endpoints {
		states[e.Name] = e
	}
	for _, name := range names {
		e, ok := states[name]
		if d.waits.tell(name, told(e, ok, err)) {
			news = append(news, name)
		}
	}
	return news
}

// told is what the owner of a Pod reads about its endpoint.
func told(e Endpoint, ok bool, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("HNS does not tell the state of its endpoint: %v", err)
	case !ok:
		return "HNS has no endpoint of that name any more: delete the Pod, so that it gets a new one"
	case e.Namespace.IsZero():
		return fmt.Sprintf("its HNS endpoint is in state %v and attached to no namespace", e.State)
	}
	return fmt.Sprintf("its HNS endpoint is in state %v", e.State)
}

// Endpoints lists the endpoints of HNS with their states, for
// ReadinessConfig.Endpoints. It ends with ctx, whatever HNS does.
func (l *Linker) Endpoints(ctx context.Context) ([]Endpoint, error) {
	objects, err := l.guard.List(ctx, Query{Kind: Endpoints, States: true})
	return objects.Endpoints, err
}
