package podnettest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Flows is a podnet.Flows in memory: which interface has flows on which number.
// Methods may be called concurrently.
type Flows struct {
	Faults

	mu      sync.Mutex
	table   map[uint32]map[ifstore.Key]ifstore.Interface
	away    bool
	changed chan struct{} // closed and replaced when away changes
}

// NewFlows returns a switch that is connected and has no flows.
func NewFlows() *Flows {
	return &Flows{table: make(map[uint32]map[ifstore.Key]ifstore.Interface), changed: make(chan struct{})}
}

// Away ends the session, or makes a new one ready. Without a session changes
// wait for one until their context ends.
func (f *Flows) Away(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
	close(f.changed)
	f.changed = make(chan struct{})
}

// Lose deletes all flows, as a restart of ovs-vswitchd does.
func (f *Flows) Lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.table)
}

// Replay is for Network.Replay: afterwards exactly the flows of ifaces stand.
func (f *Flows) Replay(ctx context.Context, ifaces []ifstore.Interface) error {
	if err := f.enter(ctx, "Replay", fmt.Sprint(len(ifaces))); err != nil {
		return err
	}
	f.mu.Lock()
	clear(f.table)
	for _, i := range ifaces {
		f.set(i)
	}
	f.mu.Unlock()
	return f.leave(ctx, "Replay", fmt.Sprint(len(ifaces)))
}

// On returns the interfaces with flows on number ofport, by key.
func (f *Flows) On(ofport uint32) []ifstore.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Keys(f.table[ofport]), func(a, b ifstore.Key) int { return cmp.Compare(a.String(), b.String()) })
}

// Of returns the numbers on which key has flows, in order.
func (f *Flows) Of(key ifstore.Key) []uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var numbers []uint32
	for _, ofport := range slices.Sorted(maps.Keys(f.table)) {
		if _, ok := f.table[ofport][key]; ok {
			numbers = append(numbers, ofport)
		}
	}
	return numbers
}

// Len returns the number of interfaces with flows, each counted once per number.
func (f *Flows) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, keys := range f.table {
		n += len(keys)
	}
	return n
}

func (f *Flows) set(i ifstore.Interface) {
	if i.OFPort == 0 || i.OFPort > 0xfeff {
		panic(fmt.Sprintf("podnettest: flows of %s on OpenFlow port %d", i.Key, i.OFPort))
	}
	if f.table[i.OFPort] == nil {
		f.table[i.OFPort] = make(map[ifstore.Key]ifstore.Interface)
	}
	f.table[i.OFPort][i.Key] = i.Clone()
}

func (f *Flows) unset(i ifstore.Interface) {
	delete(f.table[i.OFPort], i.Key)
	if len(f.table[i.OFPort]) == 0 {
		delete(f.table, i.OFPort)
	}
}

// session waits for a session.
func (f *Flows) session(ctx context.Context) error {
	for {
		f.mu.Lock()
		away, changed := f.away, f.changed
		f.mu.Unlock()
		if !away {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", podnet.ErrNotConnected, ctx.Err())
		}
	}
}

// Install implements podnet.Flows.
func (f *Flows) Install(ctx context.Context, ifaces []ifstore.Interface) []error {
	return f.each(ctx, "Install", ifaces, f.set)
}

// Uninstall implements podnet.Flows.
func (f *Flows) Uninstall(ctx context.Context, ifaces []ifstore.Interface) []error {
	return f.each(ctx, "Uninstall", ifaces, f.unset)
}

// Replace implements podnet.Flows.
func (f *Flows) Replace(ctx context.Context, old, new ifstore.Interface) error {
	return f.each(ctx, "Replace", []ifstore.Interface{new}, func(ifstore.Interface) {
		f.unset(old)
		f.set(new)
	})[0]
}

func (f *Flows) each(ctx context.Context, op string, ifaces []ifstore.Interface, change func(ifstore.Interface)) []error {
	errs := make([]error, len(ifaces))
	for n, i := range ifaces {
		errs[n] = f.change(ctx, op, i, change)
	}
	return errs
}

func (f *Flows) change(ctx context.Context, op string, i ifstore.Interface, change func(ifstore.Interface)) error {
	if err := f.enter(ctx, op, i.Key.String()); err != nil {
		return err
	}
	if err := f.session(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	change(i)
	f.mu.Unlock()
	return f.leave(ctx, op, i.Key.String())
}

// CheckFlows implements podnet.FlowChecker.
func (f *Flows) CheckFlows(ctx context.Context, iface ifstore.Interface) error {
	if err := f.enter(ctx, "CheckFlows", iface.Key.String()); err != nil {
		return err
	}
	if !slices.Contains(f.Of(iface.Key), iface.OFPort) {
		return fmt.Errorf("no flows on OpenFlow port %d", iface.OFPort)
	}
	return nil
}
