package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTwoFilesAtMostAndNoLineTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "agent.log")
	l, err := Open(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				if _, err := fmt.Fprintf(l, "writer %d line %03d\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Write([]byte("x")); err == nil {
		t.Error("a closed file takes more")
	}
	for _, name := range []string{path, path + ".1"} {
		b, err := os.ReadFile(name)
		if err != nil || len(b) == 0 || len(b) > 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		for line := range bytes.Lines(b) {
			if len(line) != len("writer 0 line 000\n") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 2 {
		t.Errorf("files: %v", left)
	}
}

// TestGoesOnWhereItEnded: a restart neither truncates the file nor forgets its size.
func TestGoesOnWhereItEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	for i := range 3 {
		l, err := Open(path, 25)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(l, "start %03d\n", i)
		l.Close()
	}
	now, _ := os.ReadFile(path)
	before, _ := os.ReadFile(path + ".1")
	if string(before) != "start 000\nstart 001\n" || string(now) != "start 002\n" {
		t.Errorf("%q, %q", before, now)
	}
}

// TestGoesOnWhenItCanBeOpenedAgain: one failure does not end the log for ever.
func TestGoesOnWhenItCanBeOpenedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	path := filepath.Join(dir, "agent.log")
	l, err := Open(path, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write([]byte("aaaa")); err != nil {
		t.Fatal(err)
	}
	// Windows removes no open file.
	l.f.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Write([]byte("bb")); err == nil {
			t.Fatal("written into a directory that is gone")
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write([]byte("cc")); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); string(got) != "cc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := l.Write([]byte("dd")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
