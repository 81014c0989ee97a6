package cniapi

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// DefaultSocket is where plugin and agent meet unless configured otherwise.
const DefaultSocket = `\\.\pipe\antrea-lite-cni`

// superuser is who may open the pipe.
const superuser = "SYSTEM or an administrator"

const (
	// absentTime is how long a pipe that is not there is waited for: the agent
	// may be between two starts, and a pipe goes with its process.
	absentTime = 300 * time.Millisecond
	dialPause  = 10 * time.Millisecond
)

// Dial connects to the agent's pipe. While all instances of the pipe are busy,
// between two accepts of the agent, go-winio tries again until ctx ends.
func Dial(ctx context.Context, socket string) (net.Conn, error) {
	for began := time.Now(); ; {
		conn, err := winio.DialPipeContext(ctx, socket)
		if !errors.Is(err, fs.ErrNotExist) || time.Since(began) > absentTime {
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
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA) || errors.Is(err, windows.ERROR_PIPE_NOT_CONNECTED)
}
