package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ICMP types of echo request and reply (RFC 792, RFC 4443).
const (
	echo4, echoReply4 = 8, 0
	echo6, echoReply6 = 128, 129
)

// Pinger sends echo requests from one namespace to one address. Its methods
// are for one goroutine.
type Pinger struct {
	conn *net.IPConn
	dst  netip.Addr
	id   uint16
	seq  uint16
}

// NewPinger opens a raw ICMP socket in the namespace at ns. src may be the
// zero Addr.
func NewPinger(ns string, src, dst netip.Addr) (*Pinger, error) {
	// Every raw socket of a namespace sees every reply; the id tells parallel pingers apart.
	p := &Pinger{dst: dst, id: uint16(rand.Uint32())}
	network := "ip4:icmp"
	if dst.Is6() {
		network = "ip6:ipv6-icmp"
	}
	laddr := &net.IPAddr{}
	if src.IsValid() {
		laddr.IP = src.AsSlice()
	}
	err := In(ns, func() (err error) {
		p.conn, err = net.ListenIP(network, laddr)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ping socket in %q: %w", ns, err)
	}
	if err := p.dontFragment(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// dontFragment makes an echo above the MTU an error instead of two packets.
func (p *Pinger) dontFragment() error {
	raw, err := p.conn.SyscallConn()
	if err != nil {
		return err
	}
	var opErr error
	err = raw.Control(func(fd uintptr) {
		if p.dst.Is6() {
			opErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
		} else {
			opErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		}
	})
	return errors.Join(err, opErr)
}

// Close closes the socket.
func (p *Pinger) Close() error { return p.conn.Close() }

// Send sends one echo request with size bytes of data and returns its number.
func (p *Pinger) Send(size int) (uint16, error) {
	p.seq++
	msg := make([]byte, 8+size)
	msg[0] = echo4
	if p.dst.Is6() {
		msg[0] = echo6
	}
	binary.BigEndian.PutUint16(msg[4:], p.id)
	binary.BigEndian.PutUint16(msg[6:], p.seq)
	for i := range msg[8:] {
		msg[8+i] = byte(i)
	}
	if p.dst.Is4() { // for ICMPv6 the kernel does it (RFC 3542)
		binary.BigEndian.PutUint16(msg[2:], checksum(msg))
	}
	_, err := p.conn.WriteToIP(msg, &net.IPAddr{IP: p.dst.AsSlice()})
	return p.seq, err
}

// Receive waits until deadline for any reply to this pinger and returns its number.
func (p *Pinger) Receive(deadline time.Time) (uint16, error) {
	if err := p.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	want := byte(echoReply4)
	if p.dst.Is6() {
		want = echoReply6
	}
	buf := make([]byte, 1<<16)
	for {
		n, from, err := p.conn.ReadFromIP(buf)
		if err != nil {
			return 0, err
		}
		addr, ok := netip.AddrFromSlice(from.IP)
		if !ok || addr.Unmap() != p.dst || n < 8 || buf[0] != want || binary.BigEndian.Uint16(buf[4:]) != p.id {
			continue
		}
		return binary.BigEndian.Uint16(buf[6:]), nil
	}
}

// ErrNoReply is what Ping returns when the time is over.
var ErrNoReply = errors.New("no reply")

// Ping sends ONE echo request of size bytes and waits for its reply.
func Ping(ns string, src, dst netip.Addr, size int, timeout time.Duration) (time.Duration, error) {
	p, err := NewPinger(ns, src, dst)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	start := time.Now()
	seq, err := p.Send(size)
	if err != nil {
		return 0, fmt.Errorf("ping %s: %w", dst, err)
	}
	for {
		got, err := p.Receive(start.Add(timeout))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0, fmt.Errorf("ping %s: %w within %s", dst, ErrNoReply, timeout)
		case err != nil:
			return 0, fmt.Errorf("ping %s: %w", dst, err)
		case got == seq:
			return time.Since(start), nil
		}
	}
}

// PingReport is what a stream of pings saw.
type PingReport struct {
	Sent, Lost int
	LongestGap time.Duration // between two replies
}

// lateTurns is how often a second is divided to wait for late replies.
const lateTurns = 10

// PingStream sends an echo request every interval until ctx ends, then waits for
// late replies until none has come for a second.
func PingStream(ctx context.Context, ns string, src, dst netip.Addr, interval time.Duration) (PingReport, error) {
	p, err := NewPinger(ns, src, dst)
	if err != nil {
		return PingReport{}, err
	}
	defer p.Close()
	var report PingReport
	answered := map[uint16]bool{}
	last := time.Now()
	// One goroutine: the wait for the next reply is also the wait for the next turn.
	for next := time.Now(); ctx.Err() == nil; {
		if !time.Now().Before(next) {
			next = next.Add(interval)
			_, err := p.Send(56)
			report.Sent++
			// A route or neighbour that is away for a moment is a loss, not the end.
			if err != nil && !errors.Is(err, syscall.EHOSTUNREACH) && !errors.Is(err, syscall.ENETUNREACH) && !errors.Is(err, syscall.ENETDOWN) {
				return report, err
			}
		}
		// Also when it is late for the next turn: replies that nobody reads look like a gap.
		until := time.Now().Add(time.Millisecond)
		if next.After(until) {
			until = next
		}
		if err := p.collect(until, answered, &last, &report); err != nil {
			return report, err
		}
	}
	stopped := time.Now()
	// In turns, because a machine that stands still for a second loses no reply.
	for turn := 0; len(answered) < report.Sent && turn < lateTurns; turn++ {
		before := len(answered)
		if err := p.collect(time.Now().Add(time.Second/lateTurns), answered, &last, &report); err != nil {
			return report, err
		}
		if len(answered) > before {
			turn = 0
		}
	}
	report.Lost = report.Sent - len(answered)
	report.LongestGap = max(report.LongestGap, stopped.Sub(last))
	return report, nil
}

func (p *Pinger) collect(until time.Time, answered map[uint16]bool, last *time.Time, report *PingReport) error {
	seq, err := p.Receive(until)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EHOSTUNREACH):
		return nil
	case err != nil:
		return err
	}
	answered[seq] = true
	report.LongestGap = max(report.LongestGap, time.Since(*last))
	*last = time.Now()
	return nil
}

// checksum is the Internet checksum (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
