package linux

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/antrea-lite/podnet/podnet"
	"golang.org/x/sys/unix"
)

// netNS is an open network namespace.
type netNS struct {
	path string
	fd   int
	id   nsID
}

// nsID tells two namespaces apart; the path does not.
type nsID struct{ dev, ino uint64 }

// errNetNSGone: nothing is at the path, or no longer a network namespace.
var errNetNSGone = errors.New("network namespace is gone")

// openNetNS opens the namespace at path. It returns an error that wraps
// errNetNSGone when there is none, and one that wraps podnet.ErrBadRequest when
// path is empty or names something that never was one.
func openNetNS(path string) (*netNS, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: network namespace path is empty; the runtime must pass one (CNI_NETNS)", podnet.ErrBadRequest)
	}
	// O_NONBLOCK: opening a FIFO must not wait for a writer.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("%w: nothing at %q (%w); the sandbox has ended, or the path is not visible to this process", errNetNSGone, path, err)
	case err != nil:
		return nil, fmt.Errorf("open network namespace %q: %w", path, err)
	}
	ns := &netNS{path: path, fd: fd}
	if err := ns.identify(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return ns, nil
}

func (ns *netNS) close() { unix.Close(ns.fd) }

func (ns *netNS) identify() error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(ns.fd, &fs); err != nil {
		return fmt.Errorf("network namespace %q: %w", ns.path, err)
	}
	if fs.Type != unix.NSFS_MAGIC {
		// What `ip netns del` or a reboot leaves when the mount goes and the file stays.
		return fmt.Errorf("%w: %q is not a namespace file; the namespace was unmounted, or the path is wrong", errNetNSGone, ns.path)
	}
	kind, err := unix.IoctlRetInt(ns.fd, unix.NS_GET_NSTYPE)
	if err != nil {
		return fmt.Errorf("network namespace %q: ask for its type: %w", ns.path, err)
	}
	if kind != unix.CLONE_NEWNET {
		return fmt.Errorf("%w: %q is a namespace of another kind (%#x); pass the path of a network namespace", podnet.ErrBadRequest, ns.path, kind)
	}
	ns.id, err = identityOf(ns.fd)
	return err
}

func identityOf(fd int) (nsID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nsID{}, fmt.Errorf("stat network namespace: %w", err)
	}
	return nsID{dev: st.Dev, ino: st.Ino}, nil
}

// ownNetNS opens the namespace of the calling thread.
func ownNetNS() (int, error) {
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open this thread's network namespace: %w", err)
	}
	return fd, nil
}

// run calls fn on a thread that is inside the namespace and returns its error.
// The thread belongs to fn alone: it goes back to where it was, or, when
// the way back fails, ends with its goroutine and never serves another one.
// fn must not start goroutines: they would run outside.
func (ns *netNS) run(fn func() error) error {
	errc := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := ownNetNS()
		if err != nil {
			runtime.UnlockOSThread()
			errc <- err
			return
		}
		defer unix.Close(home)
		if err := unix.Setns(ns.fd, unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			errc <- fmt.Errorf("enter network namespace %q: %w", ns.path, os.NewSyscallError("setns", err))
			return
		}
		err = fn()
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		errc <- err
	}()
	return <-errc
}
