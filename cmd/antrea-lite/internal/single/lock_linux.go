package single

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Acquire locks the file, which then holds our pid. A file that another process
// holds is an error that names its pid.
func Acquire(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lock file: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			defer f.Close()
			if !errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("lock %s: %w", path, err)
			}
			return nil, heldError(path, f)
		}
		// The holder before us may have removed the file between our open and our
		// lock; then we hold a file that nobody else will ever find.
		if current, err := sameFile(f, path); err != nil || !current {
			f.Close()
			if err != nil {
				return nil, fmt.Errorf("lock file: %w", err)
			}
			continue
		}
		l := &Lock{f: f}
		if err := l.writePID(); err != nil {
			return nil, errors.Join(fmt.Errorf("lock file %s: %w", path, err), l.Close())
		}
		return l, nil
	}
}

// Close removes the file and gives the lock back.
func (l *Lock) Close() error { return errors.Join(os.Remove(l.f.Name()), l.f.Close()) }

func sameFile(f *os.File, path string) (bool, error) {
	a, err := f.Stat()
	if err != nil {
		return false, err
	}
	b, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}
