package ofclient

import (
	"context"
	"errors"
	"net"
	"time"
)

// Config describes a Client. Only Dial is needed; the zero of everything else is useful.
type Config struct {
	// Dial opens the connection to the bridge: DialUnix, DialTCP, or the
	// caller's own (a named pipe).
	Dial func(ctx context.Context) (net.Conn, error)
	// Replay brings the switch to the caller's state. It runs on every new
	// session after the ports are listed and before the session is ready, and
	// must use the Conn it gets: the Client's own methods wait until it is
	// done. Its ctx ends when the session does. An error closes the session;
	// a new one is dialled after a back-off. Nil: nothing to replay.
	Replay func(ctx context.Context, conn *Conn) error

	EchoInterval time.Duration // between echo requests; a dead peer is noticed within three; 0: 5 s
	DialTimeout  time.Duration // for dialling, and again for the peer's hello; 0: 5 s
	WriteTimeout time.Duration // for one write of at most 64 KiB; 0: 10 s
	BackoffMin   time.Duration // before the second attempt to connect; doubled up to BackoffMax, each with jitter; 0: 100 ms
	BackoffMax   time.Duration // 0: 1 s: Pods are dark until a restarted switch is found, and a dial on this machine costs nothing
	ListPeriod   time.Duration // between port lists that repair lost events; 0: 30 s; negative: never

	Observer Observer
}

// Observer receives what metrics are made of. Nil functions are skipped. They
// are called from the Client's own goroutines, concurrently and partly under
// its locks: they must not block and must not call the Client.
type Observer struct {
	Connected func(connected, ready bool)                            // on every change
	Reconnect func()                                                 // a session was established again
	Bundle    func(outcome BundleOutcome, mods int, d time.Duration) // one bundle ended; mods: flow changes in it
	Coalesced func(events int)                                       // port events that found an unread one of the same port
	Repaired  func(ports int)                                        // ports that a periodic list found changed: events were lost
	Dropped   func(what Drop)                                        // a message was not used
}

// BundleOutcome is how one bundle ended.
type BundleOutcome string

const (
	BundleCommitted BundleOutcome = "committed"
	BundleRefused   BundleOutcome = "refused" // the switch answered with an error; nothing was applied
	BundleTimeout   BundleOutcome = "timeout" // the switch let the open bundle expire (OFPBFC_TIMEOUT); nothing was applied
	BundleAborted   BundleOutcome = "aborted" // the session or the callers left before the commit was sent; nothing was applied
	BundleUnknown   BundleOutcome = "unknown" // the session ended after the commit was sent
)

// Drop is a reason for which a received message was not used.
type Drop string

const (
	DropUndecodable Drop = "undecodable" // the frame's contents are malformed; the stream goes on
	DropUnexpected  Drop = "unexpected"  // a type nobody asked for, or a reply nobody waits for
	DropEcho        Drop = "echo"        // an echo request while earlier replies still wait to be written
)

func (c Config) withDefaults() (Config, error) {
	if c.Dial == nil {
		return c, errors.New("ofclient: Config.Dial is nil: use DialUnix or DialTCP")
	}
	setDefault(&c.EchoInterval, 5*time.Second)
	setDefault(&c.DialTimeout, 5*time.Second)
	setDefault(&c.WriteTimeout, 10*time.Second)
	setDefault(&c.BackoffMin, 100*time.Millisecond)
	setDefault(&c.BackoffMax, time.Second)
	setDefault(&c.ListPeriod, 30*time.Second)
	if c.Replay == nil {
		c.Replay = func(context.Context, *Conn) error { return nil }
	}
	o := &c.Observer
	if o.Connected == nil {
		o.Connected = func(_, _ bool) {}
	}
	if o.Reconnect == nil {
		o.Reconnect = func() {}
	}
	if o.Bundle == nil {
		o.Bundle = func(BundleOutcome, int, time.Duration) {}
	}
	if o.Coalesced == nil {
		o.Coalesced = func(int) {}
	}
	if o.Repaired == nil {
		o.Repaired = func(int) {}
	}
	if o.Dropped == nil {
		o.Dropped = func(Drop) {}
	}
	return c, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
