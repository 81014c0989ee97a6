package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// node is what outlives an agent: Open vSwitch, cables, addresses. It decides
// how long each call of a part takes and which fail, and collects what went
// wrong.
type node struct {
	sched     Schedule
	begun     time.Time
	keys      []ifstore.Key  // of the containers
	index     map[string]int // container by key and by host interface name
	bridge    *podnettest.Bridge
	linker    *podnettest.Linker
	addresses *podnettest.Addresses
	vs        *vswitchd
	of        openFlow
	unknown   unknownFlows
	change    func(*podnet.Config) // before an agent is made of it

	mu      sync.Mutex
	slow    int
	calls   map[string]uint64 // how often each call was made: part of what its latency depends on
	faults  []*fault
	calm    chan struct{} // closed and replaced when faults end
	late    map[int]bool  // containers whose device Link does not make
	devices map[string]device
	broken  []string
	trace   []string
}

// device is a network device of the host. Without an entry there is none.
type device struct {
	err  string // Open vSwitch cannot use it
	live bool
}

// fault makes calls of one method for one container fail.
type fault struct {
	op    string
	c     int // -1: of whatever container
	how   string
	times int
	until time.Time // of a hang
}

const hang = "hang"

func newNode(s Schedule) *node {
	n := &node{
		sched: s, begun: time.Now(), slow: s.Slow,
		index: make(map[string]int), calls: make(map[string]uint64), calm: make(chan struct{}),
		late: make(map[int]bool), devices: make(map[string]device),
		bridge: podnettest.NewBridge(), linker: podnettest.NewLinker(),
		addresses: podnettest.NewAddresses(netip.MustParsePrefix("10.10.0.0/16")),
	}
	for c := range s.Containers {
		key := podnettest.NewRequest(fmt.Sprint("c", c)).Key
		n.keys = append(n.keys, key)
		n.index[key.String()] = c
		n.index[podnettest.HostName(key)] = c
	}
	n.bridge.Slow(true) // numbers are vswitchd's to give
	n.bridge.Every(func(ctx context.Context, call podnettest.FaultCall) error {
		if call.Done && (call.Op == "AddPort" || call.Op == "DeletePort") {
			n.vs.poke()
		}
		return n.hook(ctx, call)
	})
	n.linker.Every(func(ctx context.Context, call podnettest.FaultCall) error {
		if call.Done {
			n.cabled(call)
		}
		return n.hook(ctx, call)
	})
	n.addresses.Every(n.hook)
	n.vs = newVswitchd(n)
	if s.Switch == Client {
		n.of = newClientSide(n)
	} else {
		n.of = newFakeSide(n)
	}
	// The agent frees a number by deleting the row.
	n.bridge.Freed = func(name string, ofport int32) {
		c, ok := n.index[name]
		if !ok {
			return
		}
		if numbers := n.unknown.known(n, c); len(numbers) > 0 {
			n.breach("port %s of c%d was deleted while its flows stand on %v", name, c, numbers)
		}
	}
	return n
}

func (n *node) name(c int) string { return podnettest.HostName(n.keys[c]) }

// breach notes that something must not have happened.
func (n *node) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	n.log("BREACH %s", text)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = append(n.broken, fmt.Sprintf("%v: %s", time.Since(n.begun), text))
}

// log adds a line to the story of the run.
func (n *node) log(format string, args ...any) {
	line := fmt.Sprintf("%10.3f  ", time.Since(n.begun).Seconds()) + fmt.Sprintf(format, args...)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trace = append(n.trace, line)
}

// incarnation is one life of the agent; every context of its calls carries it.
type incarnation struct {
	id     int
	killed atomic.Bool
}

type incarnationKey struct{}

func incarnationOf(ctx context.Context) *incarnation {
	inc, _ := ctx.Value(incarnationKey{}).(*incarnation)
	return inc
}

var errKilled = errors.New("sim: the agent was killed")

// hook is part of every call that the agent makes of a fake.
func (n *node) hook(ctx context.Context, call podnettest.FaultCall) error {
	inc := incarnationOf(ctx)
	if inc == nil {
		return nil // the calls without a context: Cancel
	}
	if inc.killed.Load() {
		return errKilled
	}
	err := n.pause(ctx, call)
	if err == nil {
		err = n.fail(ctx, call)
	}
	if inc.killed.Load() {
		return errKilled
	}
	return err
}

// pause takes the time that a call needs, half of it before its effect.
func (n *node) pause(ctx context.Context, call podnettest.FaultCall) error {
	d := n.latency(call.Op, call.Subject)
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cutShort(ctx, call)
	}
}

// cutShort is the error of a call whose context ended.
func cutShort(ctx context.Context, call podnettest.FaultCall) error {
	if call.Done {
		return fmt.Errorf("%w: %w", podnet.ErrOutcomeUnknown, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", podnet.ErrNotConnected, context.Cause(ctx))
}

// latency depends on the seed and on how often that call was made before, and
// on nothing else: dropping an event from a schedule leaves the others' alone.
func (n *node) latency(op, subject string) time.Duration {
	n.mu.Lock()
	id := op + " " + subject
	count := n.calls[id]
	n.calls[id]++
	slow := n.slow
	n.mu.Unlock()
	h := n.hash(id, count)
	switch slow {
	case 0:
		return 0
	case 1:
		return time.Duration(h%10) * time.Millisecond
	case 2:
		if h%16 == 0 {
			return time.Duration(h>>8%1000) * time.Millisecond
		}
		return time.Duration(h>>8%20) * time.Millisecond
	}
	if h%8 == 0 {
		return time.Duration(h>>8%3000) * time.Millisecond
	}
	return time.Duration(h>>8%50) * time.Millisecond
}

func (n *node) hash(text string, count uint64) uint64 {
	f := fnv.New64a()
	fmt.Fprintf(f, "%d %d %s", n.sched.Seed, count, text)
	return f.Sum64()
}

// fail plays the faults that are meant for a call.
func (n *node) fail(ctx context.Context, call podnettest.FaultCall) error {
	c, known := n.index[call.Subject]
	if !known {
		c = -1
	}
	n.mu.Lock()
	now := time.Now()
	at := slices.IndexFunc(n.faults, func(f *fault) bool {
		if f.op != call.Op || (f.c != c && f.c != -1) {
			return false
		}
		if f.how == hang {
			return !call.Done && now.Before(f.until)
		}
		return f.times > 0 && call.Done == (f.how == UnknownAfter)
	})
	var f fault
	if at >= 0 {
		n.faults[at].times--
		f = *n.faults[at]
	}
	calm := n.calm
	n.mu.Unlock()
	switch f.how {
	case hang:
		timer := time.NewTimer(f.until.Sub(now))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-calm:
		case <-ctx.Done():
			return cutShort(ctx, call)
		}
	case Plain:
		return fmt.Errorf("%s %s: it was told to fail", call.Op, call.Subject)
	case UnknownAfter, UnknownBefore:
		return fmt.Errorf("%s %s: %w", call.Op, call.Subject, podnet.ErrOutcomeUnknown)
	case NotConnected:
		return fmt.Errorf("%s %s: %w", call.Op, call.Subject, podnet.ErrNotConnected)
	}
	return nil
}

func (n *node) addFault(f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, &f)
}

// peace ends every fault and makes the parts quick until war.
func (n *node) peace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults, n.slow = nil, min(n.slow, 1)
	close(n.calm)
	n.calm = make(chan struct{})
}

func (n *node) war() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow = n.sched.Slow
}

// cabled follows the cables: Link makes the device unless it comes late.
func (n *node) cabled(call podnettest.FaultCall) {
	c, ok := n.index[call.Subject]
	if !ok {
		return
	}
	n.mu.Lock()
	switch call.Op {
	case "Link":
		if !n.late[c] {
			n.devices[n.name(c)] = device{live: true}
		}
	case "Unlink", "UnlinkOrphan":
		delete(n.devices, n.name(c))
	}
	n.mu.Unlock()
	n.vs.poke()
}

// changeDevice changes the host device of c.
func (n *node) changeDevice(c int, change func(devices map[string]device, name string)) {
	n.mu.Lock()
	change(n.devices, n.name(c))
	n.mu.Unlock()
	n.vs.poke()
}

func (n *node) deviceList() map[string]device {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.devices)
}

// lagged runs functions one after the other, each a while after it was given:
// the way of messages from one process to another.
type lagged struct {
	mu     sync.Mutex
	queue  []parcel
	signal chan struct{}
}

type parcel struct {
	due time.Time
	fn  func()
}

func newLagged() *lagged { return &lagged{signal: make(chan struct{}, 1)} }

func (l *lagged) put(delay time.Duration, fn func()) {
	l.mu.Lock()
	l.queue = append(l.queue, parcel{time.Now().Add(delay), fn})
	l.mu.Unlock()
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

func (l *lagged) run(ctx context.Context) {
	for {
		l.mu.Lock()
		var next parcel
		if len(l.queue) > 0 {
			next, l.queue = l.queue[0], l.queue[1:]
		}
		l.mu.Unlock()
		if next.fn == nil {
			select {
			case <-l.signal:
			case <-ctx.Done():
				return
			}
			continue
		}
		if wait := time.Until(next.due); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
		next.fn()
	}
}
