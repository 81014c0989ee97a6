// Package logfile is a log file that does not fill the disk.
package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// File is a log file of at most so many bytes, and one more of that size beside
// it: PATH.1. Write may be called concurrently.
type File struct {
	path string
	max  int64

	mu     sync.Mutex
	f      *os.File // nil: closed, or could not be opened anew
	size   int64
	closed bool
}

// Open opens the file for appending, and makes it and its directory when missing.
func Open(path string, maxBytes int64) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	l := &File{path: path, max: maxBytes}
	return l, l.open()
}

func (l *File) open() error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("log file: %w", err), f.Close())
	}
	l.f, l.size = f, fi.Size()
	return nil
}

// Write implements io.Writer. What would make the file too large begins a new one.
func (l *File) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, fs.ErrClosed
	}
	if l.f == nil { // what kept it from being opened may be over
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	if l.size > 0 && l.size+int64(len(b)) > l.max {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(b)
	l.size += int64(n)
	return n, err
}

// turn moves the full file away. It is closed first: Windows renames no open file.
func (l *File) turn() error {
	err := l.f.Close()
	l.f = nil
	if err != nil {
		return err
	}
	// A reader may have the old one open, so that it cannot be replaced; then the
	// file goes on to grow, which is better than no log.
	_ = os.Rename(l.path, l.path+".1")
	return l.open()
}

// Close closes the file. Later writes fail.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}
