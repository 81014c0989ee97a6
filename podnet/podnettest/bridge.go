package podnettest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/antrea-lite/podnet/podnet"
)

// Bridge is a podnet.Bridge in memory. Methods may be called concurrently.
type Bridge struct {
	Faults
	// Freed, if set, is called whenever a number is free again. Set it before use.
	Freed func(name string, ofport int32)
	// Opens, if set, is what Open vSwitch makes of a port: nil, it gets a number;
	// podnet.ErrNoNumber, it has none yet; any other error is the text with which
	// opening fails. It is asked when a port is added, when its type changes and
	// by Reopen. Set it before use. It must not call the Bridge.
	Opens func(port podnet.Port) error

	mu      sync.Mutex
	ports   map[string]podnet.Port
	slow    bool
	away    bool
	number  int32
	row     int
	watches map[*NameWatch]struct{}
	changed chan struct{} // closed and replaced after every change
}

// NewBridge returns a bridge without ports that gives numbers at once.
func NewBridge() *Bridge {
	return &Bridge{ports: make(map[string]podnet.Port), watches: make(map[*NameWatch]struct{}), changed: make(chan struct{})}
}

// Away cuts the connection to OVSDB, or brings it back. Without it calls wait
// until their context ends, and watches keep what they have to tell.
func (b *Bridge) Away(away bool) {
	b.mu.Lock()
	b.away = away
	b.mu.Unlock()
	b.report()
}

// enter begins a call: the faults, then the connection.
func (b *Bridge) enter(ctx context.Context, op, subject string) error {
	if err := b.Faults.enter(ctx, op, subject); err != nil {
		return err
	}
	return b.connection(ctx)
}

// connection waits for the connection.
func (b *Bridge) connection(ctx context.Context) error {
	for {
		b.mu.Lock()
		away, changed := b.away, b.changed
		b.mu.Unlock()
		if !away {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("OVSDB: %w: %w", podnet.ErrNotConnected, context.Cause(ctx))
		}
	}
}

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

// SetType sets the type of that life of the port, as *vswitch.Client does. The
// port is closed and opened anew.
func (b *Bridge) SetType(ctx context.Context, key podnet.PortKey, typ string) error {
	if err := b.enter(ctx, "SetType", fmt.Sprintf("%s %q", key.Name, typ)); err != nil {
		return err
	}
	b.mu.Lock()
	p, ok := b.ports[key.Name]
	if ok = ok && p.Gen == key.Gen; ok && p.Type != typ {
		freed := p.OFPort
		if p.Type = typ; !b.slow {
			p = b.open(p)
		} else {
			freed = 0
		}
		b.ports[key.Name] = p
		if freed > 0 && b.Freed != nil {
			defer b.Freed(key.Name, freed)
		}
	}
	b.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s: %w", key.Name, podnet.ErrNoPort)
	}
	b.report(key.Name)
	return b.leave(ctx, "SetType", key.Name)
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

// AddPort implements podnet.Bridge.
func (b *Bridge) AddPort(ctx context.Context, port podnet.Port) (podnet.PortKey, error) {
	if err := b.enter(ctx, "AddPort", port.Name); err != nil {
		return podnet.PortKey{}, err
	}
	if err := ctx.Err(); err != nil {
		return podnet.PortKey{}, err
	}
	b.mu.Lock()
	if _, ok := b.ports[port.Name]; ok {
		b.mu.Unlock()
		return podnet.PortKey{}, fmt.Errorf("%s: %w", port.Name, podnet.ErrPortExists)
	}
	if port.OFPort = 0; !b.slow {
		port = b.open(port)
	}
	b.mu.Unlock()
	port.Gen = ""
	key := b.Insert(port)
	if err := b.leave(ctx, "AddPort", port.Name); err != nil {
		return podnet.PortKey{}, err
	}
	return key, nil
}

// DeletePort implements podnet.Bridge.
func (b *Bridge) DeletePort(ctx context.Context, key podnet.PortKey) error {
	if err := b.enter(ctx, "DeletePort", key.Name); err != nil {
		return err
	}
	b.mu.Lock()
	p, ok := b.ports[key.Name]
	ok = ok && (key.Gen == "" || p.Gen == key.Gen)
	if ok {
		delete(b.ports, key.Name)
	}
	b.mu.Unlock()
	if ok {
		if b.Freed != nil {
			b.Freed(p.Name, p.OFPort)
		}
		b.report(key.Name)
	}
	return b.leave(ctx, "DeletePort", key.Name)
}

// SetExternalIDs implements podnet.Bridge.
func (b *Bridge) SetExternalIDs(ctx context.Context, key podnet.PortKey, ids map[string]string) error {
	if err := b.enter(ctx, "SetExternalIDs", key.Name); err != nil {
		return err
	}
	b.mu.Lock()
	p, ok := b.ports[key.Name]
	if ok = ok && p.Gen == key.Gen; ok {
		p.ExternalIDs = maps.Clone(p.ExternalIDs)
		for k, v := range ids {
			if v == "" {
				delete(p.ExternalIDs, k)
			} else {
				p.ExternalIDs[k] = v
			}
		}
		b.ports[key.Name] = p
	}
	b.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s: %w", key.Name, podnet.ErrNoPort)
	}
	return b.leave(ctx, "SetExternalIDs", key.Name)
}

// Ports implements podnet.Bridge.
func (b *Bridge) Ports(ctx context.Context) ([]podnet.Port, error) {
	if err := b.enter(ctx, "Ports", ""); err != nil {
		return nil, err
	}
	return b.Rows(), nil
}

// OFPort implements podnet.Bridge.
func (b *Bridge) OFPort(ctx context.Context, key podnet.PortKey) (uint32, error) {
	if err := b.enter(ctx, "OFPort", key.Name); err != nil {
		return 0, err
	}
	return b.ofport(key)
}

func (b *Bridge) ofport(key podnet.PortKey) (uint32, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.ports[key.Name]
	switch {
	case !ok || (key.Gen != "" && p.Gen != key.Gen):
		return 0, fmt.Errorf("%s: %w", key.Name, podnet.ErrNoPort)
	case p.OFPort < 0 || p.Error != "":
		return 0, &podnet.PortError{Name: p.Name, OFPort: p.OFPort, Text: p.Error}
	case p.OFPort == 0:
		return 0, fmt.Errorf("%s: %w", key.Name, podnet.ErrNoNumber)
	}
	return uint32(p.OFPort), nil
}

// WaitOFPort waits until that life of the port has a number. As with
// *vswitch.Client, a port in error or one that is gone ends the wait.
func (b *Bridge) WaitOFPort(ctx context.Context, key podnet.PortKey) (uint32, error) {
	for {
		if err := b.connection(ctx); err != nil {
			return 0, err
		}
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		ofport, err := b.ofport(key)
		if err == nil || !errors.Is(err, podnet.ErrNoNumber) {
			return ofport, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// Watch reports names of ports that change, from all present ports on.
func (b *Bridge) Watch() *NameWatch {
	w := &NameWatch{bridge: b, signal: make(chan struct{}, 1), names: make(map[string]struct{})}
	b.mu.Lock()
	names := slices.Collect(maps.Keys(b.ports))
	b.watches[w] = struct{}{}
	b.mu.Unlock()
	w.add(names)
	return w
}

func (b *Bridge) report(names ...string) {
	b.mu.Lock()
	close(b.changed)
	b.changed = make(chan struct{})
	watches := slices.Collect(maps.Keys(b.watches))
	b.mu.Unlock()
	for _, w := range watches {
		w.add(names)
	}
}

// NameWatch is a coalesced list of names; an async.Watch.
type NameWatch struct {
	bridge *Bridge // nil: nothing holds the names back
	signal chan struct{}
	mu     sync.Mutex
	names  map[string]struct{}
}

func (w *NameWatch) add(names []string) {
	w.mu.Lock()
	for _, name := range names {
		w.names[name] = struct{}{}
	}
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// Next waits for at least one name.
func (w *NameWatch) Next(ctx context.Context) ([]string, error) {
	for {
		if w.bridge != nil && w.bridge.connection(ctx) != nil {
			return nil, ctx.Err()
		}
		w.mu.Lock()
		names := slices.Sorted(maps.Keys(w.names))
		clear(w.names)
		w.mu.Unlock()
		if len(names) > 0 {
			return names, nil
		}
		select {
		case <-w.signal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
