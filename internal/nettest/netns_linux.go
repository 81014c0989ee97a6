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
	go func() { errc <- bindNew(path) }()
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

// bindNew makes a namespace and keeps it alive by a mount at path. The thread
// goes back to where it was: it may be the process's first one, which Go never
// ends and whose namespace /proc/self/ns/net shows. When the way back fails,
// the thread stays locked and no other goroutine runs on it.
func bindNew(path string) error {
	runtime.LockOSThread()
	self := fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
	home, err := unix.Open(self, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open this thread's network namespace: %w", err)
	}
	defer unix.Close(home)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("unshare: %w", err)
	}
	mountErr := unix.Mount(self, path, "", unix.MS_BIND, "")
	if err := unix.Setns(home, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("go back: %w", err)
	}
	runtime.UnlockOSThread()
	return mountErr
}
