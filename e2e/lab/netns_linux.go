package lab

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Host is the network namespace of the process itself.
const Host = ""

// In runs fn on a thread that is in the network namespace at path (Host: the
// process's own). Sockets made by fn stay in that namespace; goroutines
// started by fn do not.
func In(path string, fn func() error) error {
	if path == Host {
		return fn()
	}
	errc := make(chan error, 1)
	go func() { errc <- inNS(path, fn) }()
	return <-errc
}

func inNS(path string, fn func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := os.Open(path)
	if err != nil {
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", path, err)
	}
	err = fn()
	// A thread that cannot go home stays locked and ends with the goroutine.
	if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
	return err
}
