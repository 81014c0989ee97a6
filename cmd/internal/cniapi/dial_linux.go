package cniapi

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// DefaultSocket is where plugin and agent meet unless configured otherwise.
const DefaultSocket = "/run/antrea-lite/cni.sock"

// superuser is who may open the socket.
const superuser = "root"

// dialPause is the wait between two attempts while the agent's backlog is full.
const dialPause = 10 * time.Millisecond

// Dial connects to the agent's socket.
func Dial(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", socket)
		// A unix socket with a full backlog answers EAGAIN at once instead of making the caller wait.
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialPause):
		}
	}
}

// hungUp tells whether a connection broke because the agent went away.
func hungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
