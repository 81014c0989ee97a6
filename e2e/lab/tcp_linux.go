package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"
)

// Endpoint is an address in a network namespace.
type Endpoint struct {
	NS   string
	Addr netip.Addr
}

// Transfer is a completed TCP transfer.
type Transfer struct {
	Bytes  int64
	SHA256 string // the same at both ends
	Took   time.Duration
}

// MbitPerSecond is the rate of the transfer.
func (t Transfer) MbitPerSecond() float64 { return float64(t.Bytes) * 8 / 1e6 / t.Took.Seconds() }

// SendTCP moves size random bytes over one TCP connection and compares the
// digests at both ends: a ping would not see checksum offload that the
// userspace datapath cannot complete.
func SendTCP(ctx context.Context, from, to Endpoint, size int64) (Transfer, error) {
	return transfer(ctx, from, to, io.LimitReader(randomBytes(), size))
}

// settleTime is how long StreamTCP waits, when nothing more is sent, for what is
// under way: a connection that met an outage pauses for seconds before it tries again.
const settleTime = 60 * time.Second

// StreamTCP sends size random bytes every interval over one TCP connection until ctx
// ends, and compares the digests at both ends as SendTCP does.
func StreamTCP(ctx context.Context, from, to Endpoint, size int, interval time.Duration) (Transfer, error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(settleTime, cancel) })()
	return transfer(whole, from, to, &paced{ctx, tick.C, size, randomBytes()})
}

func randomBytes() io.Reader { return rand.NewChaCha8([32]byte{}) }

// paced reads size bytes at each tick until ctx ends.
type paced struct {
	ctx    context.Context
	tick   <-chan time.Time
	size   int
	source io.Reader
}

func (p *paced) Read(b []byte) (int, error) {
	select {
	case <-p.ctx.Done():
		return 0, io.EOF
	case <-p.tick:
		return p.source.Read(b[:min(len(b), p.size)])
	}
}

// transfer sends all of source.
func transfer(ctx context.Context, from, to Endpoint, source io.Reader) (Transfer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := Listen(to, 0)
	if err != nil {
		return Transfer{}, err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	received := make(chan error, 1)
	var digest string
	go func() { received <- receive(ctx, l, &digest) }()

	conn, err := Dial(ctx, from, netip.AddrPortFrom(to.Addr, uint16(l.Addr().(*net.TCPAddr).Port)))
	if err != nil {
		return Transfer{}, err
	}
	defer conn.Close()
	stopConn := context.AfterFunc(ctx, func() { conn.Close() })
	defer stopConn()
	start := time.Now()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(conn, sum), source)
	if err != nil {
		return Transfer{}, fmt.Errorf("send to %s: %w", to.Addr, orCause(ctx, err))
	}
	if err := conn.CloseWrite(); err != nil {
		return Transfer{}, err
	}
	select {
	case err := <-received:
		if err != nil {
			return Transfer{}, fmt.Errorf("receive at %s: %w", to.Addr, orCause(ctx, err))
		}
	case <-ctx.Done():
		return Transfer{}, fmt.Errorf("transfer %s -> %s: %w", from.Addr, to.Addr, context.Cause(ctx))
	}
	t := Transfer{Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil)), Took: time.Since(start)}
	if digest != t.SHA256 {
		return t, fmt.Errorf("transfer %s -> %s: sent %s, received %s", from.Addr, to.Addr, t.SHA256, digest)
	}
	return t, nil
}

func receive(ctx context.Context, l net.Listener, digest *string) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	sum := sha256.New()
	if _, err := io.Copy(sum, conn); err != nil {
		return err
	}
	*digest = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// orCause prefers why ctx ended over the closed connection that follows from it.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// Listen opens a TCP listener at an endpoint; port 0 takes a free one.
func Listen(at Endpoint, port uint16) (l net.Listener, err error) {
	err = In(at.NS, func() (err error) {
		l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Addr, port)))
		return err
	})
	return l, err
}

// Dial connects from an endpoint; its Addr may be the zero Addr. The handshake
// ends with ctx.
func Dial(ctx context.Context, from Endpoint, to netip.AddrPort) (conn *net.TCPConn, err error) {
	var d net.Dialer
	if from.Addr.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from.Addr, 0))
	}
	err = In(from.NS, func() error {
		c, err := d.DialContext(ctx, "tcp", to.String())
		if err != nil {
			return err
		}
		conn = c.(*net.TCPConn)
		return nil
	})
	return conn, err
}
