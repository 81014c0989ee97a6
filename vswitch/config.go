package vswitch

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

const (
	backoffMin = 50 * time.Millisecond
	// maxJoined bounds one transaction: at 512 ports it is some 300 kB of JSON
	// and keeps ovsdb-server busy for tens of milliseconds.
	maxJoined = 512
)

// Config says which bridge of which Open vSwitch a Client manages.
type Config struct {
	// Endpoint is where ovsdb-server listens: "unix:/run/openvswitch/db.sock" or "tcp:127.0.0.1:6640".
	Endpoint string
	// Dial connects to ovsdb-server in place of the Endpoint's own network, for example to a named pipe; Endpoint then only names it in messages.
	Dial func(ctx context.Context) (net.Conn, error)
	// Bridge is the bridge's name.
	Bridge string
	// Datapath is "system" (the kernel's, and the default) or "netdev" (userspace).
	Datapath string
	// Standalone makes a bridge that switches by itself, like a learning switch, in
	// place of one that does nothing without flows.
	Standalone bool

	// ProbeInterval is how long the server may be silent before it is asked for an echo; after
	// two of them the connection is given up. Default 5 s.
	ProbeInterval time.Duration
	DialTimeout   time.Duration // for one attempt; default 5 s
	BackoffMax    time.Duration // between two attempts; default 5 s
	// AnswerTimeout bounds one transaction, and half of a connection's set-up, on a server
	// that is otherwise alive. Default 30 s.
	AnswerTimeout time.Duration

	Observer Observer // nil: none
}

// Observer learns what metrics need. Its methods are called with locks held:
// they must neither block nor call the Client.
type Observer interface {
	// Connected reports that the copy of the database became current, or is no longer.
	Connected(current bool)
	// Transacted reports one transaction: how many changes it joined, how long the answer took, and how it ended.
	Transacted(kind string, changes int, took time.Duration, err error)
}

type noObserver struct{}

func (noObserver) Connected(bool)                               {}
func (noObserver) Transacted(string, int, time.Duration, error) {}

func (cfg Config) withDefaults() (Config, error) {
	if cfg.Bridge == "" || len(cfg.Bridge) > maxName {
		return cfg, fmt.Errorf("bridge name %q: want 1 to %d characters", cfg.Bridge, maxName)
	}
	switch cfg.Datapath {
	case "":
		cfg.Datapath = "system"
	case "system", "netdev":
	default:
		return cfg, fmt.Errorf("datapath type %q of bridge %s: want system (kernel) or netdev (userspace)", cfg.Datapath, cfg.Bridge)
	}
	if cfg.Dial == nil {
		network, address, _ := strings.Cut(cfg.Endpoint, ":")
		if (network != "unix" && network != "tcp") || address == "" {
			return cfg, fmt.Errorf("OVSDB endpoint %q: want unix:/path/to/db.sock or tcp:host:port", cfg.Endpoint)
		}
		cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		}
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&cfg.ProbeInterval, 5 * time.Second}, {&cfg.DialTimeout, 5 * time.Second}, {&cfg.BackoffMax, 5 * time.Second}, {&cfg.AnswerTimeout, 30 * time.Second}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	return cfg, nil
}

// failMode is the bridge's fail_mode: what it does without a controller.
func (cfg Config) failMode() string {
	if cfg.Standalone {
		return "standalone"
	}
	return "secure"
}
