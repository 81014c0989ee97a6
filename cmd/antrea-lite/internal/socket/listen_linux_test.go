package socket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestListen(t *testing.T) {
	path := filepath.Join(shortDir(t), "sub", "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o600 || fi.Mode().Type() != os.ModeSocket {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
		}
	}()
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process listens") || !strings.Contains(err.Error(), path) {
		t.Errorf("second listener: %v", err)
	}
	for range 2 {
		l.Close()
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false) // as after kill -9
	old.Close()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestStrangersFileStays(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	if err := os.WriteFile(path, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// TestSuccessorsSocketStays: a listener that closes late removes its own file only.
func TestSuccessorsSocketStays(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	first.(*listener).UnixListener.Close() // the file is stale now
	second, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	first.Close()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the successor's socket: %v", err)
	}
}
