package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// dialTimeout bounds the question whether somebody listens; a local answer takes microseconds.
const dialTimeout = 2 * time.Second

// Listen listens on path with mode 0600. A socket left by a process that ended
// is replaced, but only after a dial failed; one that somebody listens on, and a
// file that is no socket, are errors. The mode is right from the first moment:
// the socket is made under another name and renamed.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("socket directory: %w", err)
	}
	if err := vacant(path); err != nil {
		return nil, err
	}
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(temp, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), l.Close(), os.Remove(temp))
	}
	own, err := os.Lstat(temp)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), l.Close(), os.Remove(temp))
	}
	return &listener{UnixListener: l, path: path, own: own}, nil
}

// vacant tells whether the path may be taken.
func vacant(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("socket %s: a file that is no socket is there: remove it, or choose another path", path)
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err == nil {
		conn.Close()
		return fmt.Errorf("socket %s: another process listens on it: end that process, or choose another path", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket %s: cannot tell whether another process listens on it: %w", path, err)
	}
	return nil
}

// listener removes its file when closed, unless the path is somebody else's by then.
type listener struct {
	*net.UnixListener
	path string
	own  fs.FileInfo
	once sync.Once
}

// Close may be called more than once, as net/http does.
func (l *listener) Close() error {
	err := l.UnixListener.Close()
	l.once.Do(func() {
		if fi, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(fi, l.own) {
			err = errors.Join(err, os.Remove(l.path))
		}
	})
	return err
}
