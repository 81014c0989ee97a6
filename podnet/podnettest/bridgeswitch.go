package podnettest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/antrea-lite/podnet/podnet"
)

// Slow makes new ports stay without a number, as when ovs-vswitchd is stopped.
// Turning it off gives all of them numbers.
func (b *Bridge) Slow(slow bool) {
	b.mu.Lock()
	b.slow = slow
	var names []string
	if !slow {
		for _, name := range slices.Sorted(maps.Keys(b.ports)) {
			if p := b.ports[name]; p.OFPort == 0 || (b.Opens != nil && p.OFPort < 0) {
				b.ports[name] = b.open(p)
				names = append(names, name)
			}
		}
	}
	b.mu.Unlock()
	b.report(names...)
}

func (b *Bridge) nextNumber() int32 {
	b.number++
	return b.number
}

// open gives the port a number or an error, as Opens says. b.mu is held.
func (b *Bridge) open(p podnet.Port) podnet.Port {
	var err error
	if b.Opens != nil {
		err = b.Opens(p)
	}
	p.Error = ""
	switch {
	case err == nil:
		p.OFPort = b.nextNumber()
	case errors.Is(err, podnet.ErrNoNumber):
		p.OFPort = 0
	default:
		p.OFPort, p.Error = -1, err.Error()
	}
	return p
}

// Reopen makes Open vSwitch look again at a port that has no number, as it does
// when a device comes.
func (b *Bridge) Reopen(name string) {
	b.mu.Lock()
	if p, ok := b.ports[name]; ok && !b.slow && p.OFPort <= 0 {
		b.ports[name] = b.open(p)
	}
	b.mu.Unlock()
	b.report(name)
}

// SetOFPort sets a port's number and error text, as Open vSwitch would.
func (b *Bridge) SetOFPort(name string, ofport int32, text string) {
	b.mu.Lock()
	p, ok := b.ports[name]
	if !ok {
		b.mu.Unlock()
		panic(fmt.Sprintf("podnettest: no port %q", name))
	}
	p.OFPort, p.Error = ofport, text
	b.ports[name] = p
	b.mu.Unlock()
	b.report(name)
}

// Change changes that life of a port behind everybody's back, as Open vSwitch
// would; false when it is gone. The name is reported if change returns true.
func (b *Bridge) Change(key podnet.PortKey, change func(*podnet.Port) bool) bool {
	b.mu.Lock()
	p, ok := b.ports[key.Name]
	ok = ok && p.Gen == key.Gen
	changed := ok && change(&p)
	if changed {
		b.ports[key.Name] = p
	}
	b.mu.Unlock()
	if changed {
		b.report(key.Name)
	}
	return ok
}

// Insert adds a port behind everybody's back and returns its key.
func (b *Bridge) Insert(port podnet.Port) podnet.PortKey {
	b.mu.Lock()
	b.row++
	if port.Gen == "" {
		port.Gen = fmt.Sprintf("00000000-0000-4000-8000-%012d", b.row)
	}
	port.ExternalIDs = maps.Clone(port.ExternalIDs)
	b.ports[port.Name] = port
	b.mu.Unlock()
	b.report(port.Name)
	return port.PortKey
}

// Remove deletes a port behind everybody's back.
func (b *Bridge) Remove(name string) {
	b.mu.Lock()
	delete(b.ports, name)
	b.mu.Unlock()
	b.report(name)
}

// Rows returns all ports by name, also while the connection is away.
func (b *Bridge) Rows() []podnet.Port {
	b.mu.Lock()
	defer b.mu.Unlock()
	ports := make([]podnet.Port, 0, len(b.ports))
	for _, name := range slices.Sorted(maps.Keys(b.ports)) {
		p := b.ports[name]
		p.ExternalIDs = maps.Clone(p.ExternalIDs)
		ports = append(ports, p)
	}
	return ports
}

// Names returns the names of all ports, sorted.
func (b *Bridge) Names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.ports))
}
