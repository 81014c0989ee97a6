package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Echo is a UDP server that sends back what it gets.
type Echo struct {
	conn *net.UDPConn
	done chan struct{}
}

// UDPEcho starts an echo server at an endpoint.
func UDPEcho(at Endpoint) (*Echo, error) {
	e := &Echo{done: make(chan struct{})}
	err := In(at.NS, func() (err error) {
		e.conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr, 0)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("UDP server at %s: %w", at.Addr, err)
	}
	go func() {
		defer close(e.done)
		buf := make([]byte, 1<<16)
		for {
			size, from, err := e.conn.ReadFromUDPAddrPort(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// An ICMP error about an earlier answer is reported here; the next datagram is fine.
			if err == nil {
				_, _ = e.conn.WriteToUDPAddrPort(buf[:size], from)
			}
		}
	}()
	return e, nil
}

// Addr is where the server listens.
func (e *Echo) Addr() netip.AddrPort {
	a := e.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Close ends the server.
func (e *Echo) Close() {
	e.conn.Close()
	<-e.done
}

// AskUDP sends datagrams to an echo server until one is answered or ctx ends.
func AskUDP(ctx context.Context, from Endpoint, to netip.AddrPort) error {
	var conn *net.UDPConn
	err := In(from.NS, func() (err error) {
		conn, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from.Addr, 0)), net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	return Until(ctx, func() error {
		if _, err := conn.Write([]byte("ask")); err != nil {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := conn.Read(make([]byte, 16)); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = ErrNoReply
			}
			return fmt.Errorf("UDP %s -> %s: %w", from.Addr, to, err)
		}
		return nil
	})
}

// UDPOf reads the addresses of an untagged frame that carries UDP over IPv4
// without options, or over IPv6 without extension headers.
func UDPOf(frame []byte) (src, dst netip.AddrPort, ok bool) {
	if len(frame) < 14+20+8 {
		return src, dst, false
	}
	etherType, ip := binary.BigEndian.Uint16(frame[12:]), frame[14:]
	var from, to netip.Addr
	switch {
	case etherType == EthIPv4 && ip[0] == 0x45 && ip[9] == unix.IPPROTO_UDP:
		from, to, ip = netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:])), ip[20:]
	case etherType == EthIPv6 && len(ip) >= 48 && ip[6] == unix.IPPROTO_UDP:
		from, to, ip = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:])), ip[40:]
	default:
		return src, dst, false
	}
	return netip.AddrPortFrom(from, binary.BigEndian.Uint16(ip)), netip.AddrPortFrom(to, binary.BigEndian.Uint16(ip[2:])), true
}
