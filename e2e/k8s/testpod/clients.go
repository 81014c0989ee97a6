package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
)

// get copies the answer of one request to w.
func get(ctx context.Context, url string, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	_, err = io.Copy(w, resp.Body)
	return err
}

// send moves size random bytes and compares the digests.
func send(ctx context.Context, address string, size int64) error {
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(conn, sum), io.LimitReader(rand.NewChaCha8([32]byte{}), size)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	theirs, err := io.ReadAll(conn)
	if err != nil {
		return fmt.Errorf("wait for the digest: %w", err)
	}
	if ours := sum.Sum(nil); !bytes.Equal(ours, theirs) {
		return fmt.Errorf("digest of what was sent: %x, received: %x", ours, theirs)
	}
	return nil
}

// askUDP sends one datagram and demands the same one back.
func askUDP(ctx context.Context, address string, size int) error {
	conn, err := dial(ctx, "udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	sent := make([]byte, size)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	if _, err := conn.Write(sent); err != nil {
		return err
	}
	received := make([]byte, 1<<16)
	n, err := conn.Read(received)
	if err != nil {
		return err
	}
	if !bytes.Equal(sent, received[:n]) {
		return fmt.Errorf("sent %d bytes, received %d others", size, n)
	}
	return nil
}

// lookup prints the addresses of a name, one a line.
func lookup(ctx context.Context, name string, w io.Writer) error {
	addrs, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		fmt.Fprintln(w, a)
	}
	return nil
}

// dial connects; the connection ends with ctx's deadline.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline() // main always sets one
	return conn, conn.SetDeadline(deadline)
}
