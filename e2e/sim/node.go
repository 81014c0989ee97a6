package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
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
