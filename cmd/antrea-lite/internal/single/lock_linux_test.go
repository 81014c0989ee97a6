package single

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

const holder = "SINGLE_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holder); path != "" {
		if _, err := Acquire(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		select {} // until it is killed
	}
	goleak.VerifyTestMain(m)
}

// TestOtherProcess: the second names the first, and kill -9 frees the lock.
func TestOtherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "br.lock")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holder+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 5)
	if _, err := out.Read(line); err != nil || string(line[:4]) != "held" {
		t.Fatalf("%q %v", line, err)
	}
	_, err = Acquire(path)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", cmd.Process.Pid)) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v names neither pid %d nor the file", err, cmd.Process.Pid)
	}
	cmd.Process.Kill()
	cmd.Wait()
	l, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(b)) != fmt.Sprint(os.Getpid()) {
		t.Errorf("the file says %q, %v", b, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file stays: %v", err)
	}
}

// TestNeverTwo: whoever holds the lock is alone, though files come and go.
func TestNeverTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "br.lock")
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := 0
	for range 8 {
		wg.Go(func() {
			for range 300 {
				l, err := Acquire(path)
				if err != nil {
					continue
				}
				if !mu.TryLock() {
					t.Error("two hold the lock")
				} else {
					got++
					mu.Unlock()
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got == 0 {
		t.Error("nobody ever got the lock")
	}
}
