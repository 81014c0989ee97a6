package windows

import (
	"context"
	"sync"

	"github.com/antrea-lite/podnet/internal/derive"
	"github.com/antrea-lite/podnet/internal/join"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Linker makes, checks and removes HNS endpoints. It implements podnet.Linker,
// podnet.Prober and podnet.OrphanUnlinker; its methods may be called
// concurrently. Errors that wrap podnet.ErrTryAgain may go away by themselves:
// HNS does not answer in time, or its network is missing.
type Linker struct {
	cfg   Config
	guard *guard

	// resolves joins the callers that need the network while it is looked up.
	resolves *join.Joiner[struct{}, Network]
	// ensures serves one EnsureNetwork at a time.
	ensures *join.Joiner[struct{}, ensured]

	mu      sync.Mutex
	network Network             // as found last; the zero Network: not known
	made    map[string]struct{} // names of endpoints that this process linked and has not unlinked since
}

var (
	_ podnet.Linker         = (*Linker)(nil)
	_ podnet.Prober         = (*Linker)(nil)
	_ podnet.OrphanUnlinker = (*Linker)(nil)
)

// NewLinker returns a Linker. It asks nothing of HNS yet. A Config that cannot
// work is refused with an error that wraps podnet.ErrBadRequest.
func NewLinker(cfg Config) (*Linker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Linker{cfg: cfg, guard: newGuard(cfg.HNS, cfg.CallTimeout, cfg.MaxCalls, cfg.ObserveCall), made: make(map[string]struct{})}
	l.resolves, l.ensures = join.New(l.resolveOnce, 0), join.New(l.ensureOnce, 0)
	return l, nil
}

// HostName is the name of the endpoint, the host interface and the OVS port of
// an interface. It has 15 characters: OpenFlow cuts port names there.
func (l *Linker) HostName(key ifstore.Key) string { return derive.Name(l.cfg.HostPrefix, key) }

// Health reports how HNS answers, for metrics and node conditions.
func (l *Linker) Health() Health { return l.guard.health() }

func (l *Linker) setMade(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[name] = struct{}{}
}

func (l *Linker) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.made, name)
}

func (l *Linker) isMade(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.made[name]
	return ok
}

// endpointsNamed returns the endpoints of that name on any network.
func (l *Linker) endpointsNamed(ctx context.Context, name string, states bool) ([]Endpoint, error) {
	objects, err := l.guard.List(ctx, Query{Kind: Endpoints, Name: name, States: states})
	return objects.Endpoints, err
}

// namespaceGone reports whether HNS says that there is no such namespace. What
// cannot be found out is an error.
func (l *Linker) namespaceGone(ctx context.Context, id GUID) (bool, error) {
	if id.IsZero() {
		return true, nil
	}
	objects, err := l.guard.List(ctx, Query{Kind: Namespaces, ID: id})
	return err == nil && len(objects.Namespaces) == 0, err
}
