package vswitch

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/podnet"
)

// maxOFPort is the highest number of a port that is neither reserved nor
// special (OFPP_MAX of OpenFlow 1.0, which OVSDB's ofport keeps to).
const maxOFPort = 0xfeff

// Ports lists every port of the bridge, the bridge's own included, sorted by
// name; of a bond each member. It waits for a current view.
func (c *Client) Ports(ctx context.Context) ([]podnet.Port, error) {
	var ports []podnet.Port
	err := c.await(ctx, "", func(t *tables) (bool, error) {
		b := t.bridge(c.cfg.Bridge)
		if b == nil {
			return false, c.noBridge()
		}
		for _, f := range t.all(b) {
			ports = append(ports, podnet.Port{
				PortKey:     podnet.PortKey{Name: f.iface.Name, Gen: f.iface.UUID},
				Type:        f.iface.Type,
				OFPort:      int32(value(f.iface.OFPort)),
				Error:       value(f.iface.Error),
				ExternalIDs: f.ids(),
			})
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list ports: %w", err)
	}
	return ports, nil
}

// OFPort returns the number of that life of the port now: podnet.ErrNoPort,
// podnet.ErrNoNumber, or a *podnet.PortError when the number is none that a flow may use.
// It waits only while the view is not current.
func (c *Client) OFPort(ctx context.Context, key podnet.PortKey) (uint32, error) {
	var n uint32
	err := c.await(ctx, "", func(t *tables) (bool, error) {
		var err error
		n, err = c.ofport(t, key)
		return true, err
	})
	return n, err
}

// WaitOFPort waits for the number of that life of the port, woken by the
// monitor. A negative number ends it with a *podnet.PortError that carries
// Open vSwitch's own text, a port that goes away with podnet.ErrNoPort; when ctx ends the
// error wraps podnet.ErrNoNumber and ctx's cause.
func (c *Client) WaitOFPort(ctx context.Context, key podnet.PortKey) (uint32, error) {
	if key.Gen == "" {
		err := c.await(ctx, "", func(t *tables) (bool, error) {
			f, ok := c.find(t, key)
			if !ok {
				return false, noPort(key)
			}
			key.Gen = f.iface.UUID
			return true, nil
		})
		if err != nil {
			return 0, err
		}
	}
	var n uint32
	err := c.await(ctx, key.Gen, func(t *tables) (bool, error) {
		var err error
		n, err = c.ofport(t, key)
		if errors.Is(err, podnet.ErrNoNumber) {
			return false, nil
		}
		return true, err
	})
	if err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("port %s: %w (is ovs-vswitchd stopped or busy?): %w", key.Name, podnet.ErrNoNumber, err)
	}
	return n, err
}

func noPort(key podnet.PortKey) error {
	if key.Gen == "" {
		return fmt.Errorf("port %s: %w", key.Name, podnet.ErrNoPort)
	}
	return fmt.Errorf("port %s (row %s): %w", key.Name, key.Gen, podnet.ErrNoPort)
}

// ofport is the one judge of what OVSDB's ofport means.
func (c *Client) ofport(t *tables, key podnet.PortKey) (uint32, error) {
	f, ok := c.find(t, key)
	if !ok {
		return 0, noPort(key)
	}
	text := value(f.iface.Error)
	switch n := value(f.iface.OFPort); {
	case n == 0:
		if text != "" {
			return 0, fmt.Errorf("port %s: %w (%s)", f.iface.Name, podnet.ErrNoNumber, text)
		}
		return 0, fmt.Errorf("port %s: %w", f.iface.Name, podnet.ErrNoNumber)
	case n < 0:
		return 0, &podnet.PortError{Name: f.iface.Name, OFPort: int32(n), Text: text}
	case n > maxOFPort:
		return 0, &podnet.PortError{Name: f.iface.Name, OFPort: int32(n), Text: fmt.Sprintf("not in 1..%d; only such numbers can be matched by a Pod's flows", maxOFPort)}
	default:
		return uint32(n), nil
	}
}
