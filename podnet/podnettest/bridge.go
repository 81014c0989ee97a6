package podnettest

import (
	"context"
	"fmt"
	"maps"
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
