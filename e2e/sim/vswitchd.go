package sim

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// vswitchd plays ovs-vswitchd: it gives numbers to the rows whose device is
// there and tells of it, in OVSDB and by OpenFlow, each with a delay of its own.
type vswitchd struct {
	n      *node
	db, of *lagged
	signal chan struct{}

	mu      sync.Mutex
	stopped bool
	life    int // what an earlier one was about to write or send never comes
	ports   map[string]vport
	next    uint32
	lose    int                        // messages about ports to lose
	given   map[string]map[uint32]bool // numbers that a row has had, by Gen
	listed  map[port]bool              // what an OpenFlow session may have heard or listed
	live    map[string]bool            // rows whose port was LIVE at any time, by Gen
}

// port is what OpenFlow says of a name.
type port struct {
	name   string
	number uint32
}

// vport is an OpenFlow port.
type vport struct {
	gen    string
	number uint32
	live   bool
}

func newVswitchd(n *node) *vswitchd {
	return &vswitchd{n: n, db: newLagged(), of: newLagged(), signal: make(chan struct{}, 1), ports: make(map[string]vport), next: 1,
		given: make(map[string]map[uint32]bool), live: make(map[string]bool), listed: make(map[port]bool)}
}

// run follows the rows and devices until ctx ends.
func (v *vswitchd) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { v.db.run(ctx) })
	wg.Go(func() { v.of.run(ctx) })
	for {
		select {
		case <-v.signal:
		case <-ctx.Done():
			return
		}
		if d := v.n.latency("reconfigure", ""); d > 0 {
			timer := time.NewTimer(d)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
		v.mu.Lock()
		v.reconfigure()
		v.mu.Unlock()
	}
}

func (v *vswitchd) poke() {
	select {
	case v.signal <- struct{}{}:
	default:
	}
}

// reconfigure makes the ports equal to the rows. The lock is held.
func (v *vswitchd) reconfigure() {
	if v.stopped {
		return
	}
	devices := v.n.deviceList()
	rows := v.n.bridge.Rows()
	wanted := make(map[string]bool)
	for _, row := range rows {
		dev, there := devices[row.Name]
		port, has := v.ports[row.Name]
		switch {
		case !there || dev.err != "":
			text := dev.err
			if !there {
				text = "could not open network device " + row.Name + " (No such device)"
			}
			v.write(row.PortKey, -1, text)
			continue
		case !has:
			// A number in the row is what it had before a restart.
			number := uint32(max(row.OFPort, 0))
			if number == 0 || v.taken(number) {
				number = v.fresh()
			}
			v.set(row.PortKey, vport{gen: row.Gen, number: number, live: dev.live})
		case port.gen != row.Gen || port.live != dev.live:
			// A row that was replaced between two looks keeps the number of the name.
			v.set(row.PortKey, vport{gen: row.Gen, number: port.number, live: dev.live})
		case row.OFPort != int32(port.number):
			v.write(row.PortKey, int32(port.number), "")
		}
		wanted[row.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(v.ports)) {
		if !wanted[name] {
			v.tell(name, v.ports[name], true)
			delete(v.ports, name)
		}
	}
}

func (v *vswitchd) taken(number uint32) bool {
	for _, p := range v.ports {
		if p.number == number {
			return true
		}
	}
	return false
}

// fresh returns the next number that no port has and no row claims.
func (v *vswitchd) fresh() uint32 {
	for {
		number := v.next
		v.next++
		claimed := slices.ContainsFunc(v.n.bridge.Rows(), func(p podnet.Port) bool { return p.OFPort == int32(number) })
		if !v.taken(number) && !claimed {
			return number
		}
	}
}

// set gives a port its number and tells of it.
func (v *vswitchd) set(key podnet.PortKey, p vport) {
	v.ports[key.Name] = p
	if p.live {
		v.live[key.Gen] = true
	}
	v.tell(key.Name, p, false)
	v.write(key, int32(p.number), "")
}

func (v *vswitchd) write(key podnet.PortKey, number int32, text string) {
	if v.given[key.Gen] == nil {
		v.given[key.Gen] = make(map[uint32]bool)
	}
	if number > 0 {
		v.given[key.Gen][uint32(number)] = true
	}
	life := v.life
	v.db.put(v.n.latency("db", key.Name), func() {
		if v.died(life) {
			return
		}
		v.n.bridge.Change(key, func(p *podnet.Port) bool {
			changed := p.OFPort != number || p.Error != text
			p.OFPort, p.Error = number, text
			return changed
		})
	})
}

func (v *vswitchd) tell(name string, p vport, gone bool) {
	lost := v.lose > 0
	if lost {
		v.lose--
	}
	life := v.life
	v.of.put(v.n.latency("port-status", name), func() {
		if v.died(life) {
			return
		}
		if !gone {
			v.mu.Lock()
			v.listed[port{name, p.number}] = true
			v.mu.Unlock()
		}
		v.n.of.hear(name, async.PortState{Number: p.number, Live: p.live}, gone, lost)
	})
}

func (v *vswitchd) died(life int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.life != life
}

// renumber gives the port of name another number, or the one of other.
func (v *vswitchd) renumber(name, other string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.ports[name]
	if !ok || v.stopped {
		return
	}
	from, steal := v.ports[other]
	if other != "" && !steal {
		return
	}
	if !steal {
		v.tell(name, p, true)
		p.number = v.fresh()
		v.set(podnet.PortKey{Name: name, Gen: p.gen}, p)
		return
	}
	v.tell(other, from, true)
	v.tell(name, p, true)
	p.number = from.number
	v.ports[name] = p
	from.number = v.fresh()
	v.set(podnet.PortKey{Name: name, Gen: p.gen}, p)
	v.set(podnet.PortKey{Name: other, Gen: from.gen}, from)
}

// stop freezes it (restart: ends it, with flows and ports); start lets it go on.
func (v *vswitchd) stop(restart bool) {
	v.mu.Lock()
	v.stopped = true
	if restart {
		v.life++
		v.ports, v.next = make(map[string]vport), 1
	}
	v.mu.Unlock()
}

func (v *vswitchd) start() {
	v.mu.Lock()
	v.stopped = false
	v.mu.Unlock()
	v.poke()
}

func (v *vswitchd) loseNext(times int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lose = times
}

// had reports whether OVSDB ever gave the number to the row, and OpenFlow to the name.
func (v *vswitchd) had(gen, name string, number uint32) (row, listed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.given[gen][number], v.listed[port{name, number}]
}

// truth is the port of name now, and whether it was LIVE at any time.
func (v *vswitchd) truth(name string) (p vport, wasLive, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok = v.ports[name]
	return p, v.live[p.gen], ok
}
