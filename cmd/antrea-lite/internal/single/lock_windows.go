package single

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

const (
	// lockedAt is the one byte that is locked: far behind the pid, because on
	// Windows nobody else can read what is locked.
	lockedAt = 1 << 30

	// A process that was killed may keep its locks for a moment (LockFileEx).
	patience = time.Second
	pause    = 20 * time.Millisecond
)

// Acquire locks the file, which then holds our pid. A file that another process
// holds is an error that names its pid. The file stays: on Windows it cannot be
// removed while it is open, and after that another may have locked it.
func Acquire(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	for until := time.Now().Add(patience); ; time.Sleep(pause) {
		err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{Offset: lockedAt})
		if err == nil {
			break
		}
		if !errors.Is(err, windows.ERROR_LOCK_VIOLATION) && !errors.Is(err, windows.ERROR_IO_PENDING) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if time.Now().After(until) {
			return nil, errors.Join(heldError(path, f), f.Close())
		}
	}
	l := &Lock{f: f}
	if err := l.writePID(); err != nil {
		return nil, errors.Join(fmt.Errorf("lock file %s: %w", path, err), l.Close())
	}
	return l, nil
}

// Close gives the lock back.
func (l *Lock) Close() error { return l.f.Close() }
