package nettest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// NewNS makes a named network namespace below /run/netns as `ip netns add`
// does, and returns its path.
func NewNS(name string) (string, error) {
	path := filepath.Join("/run/netns", name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return "", err
	}
	f.Close()
	errc := make(chan error)
	go func() {
		// The thread is left locked: Go ends it with the goroutine instead
		// of giving a thread in a foreign namespace back to the pool.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			errc <- fmt.Errorf("unshare: %w", err)
			return
		}
		src := fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		errc <- unix.Mount(src, path, "", unix.MS_BIND, "")
	}()
	if err := <-errc; err != nil {
		os.Remove(path)
		return "", fmt.Errorf("network namespace %s: %w", name, err)
	}
	return path, nil
}

// DeleteNS removes what NewNS made.
func DeleteNS(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return os.Remove(path)
}
