// Package nettest runs a whole test binary in private network, mount and PID
// namespaces, so that tests with real netdevs, netns and Open vSwitch neither
// see nor disturb the machine, and nothing outlives them.
package nettest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const inside = "PODNET_NETTEST_INSIDE"

// Main is called first in TestMain (or main). The first time it starts the
// program again inside new namespaces and exits with its code; inside it
// prepares them and returns. It needs root and fails loudly without.
func Main() {
	if os.Getenv(inside) == "" {
		os.Exit(reexec())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "nettest:", err)
		os.Exit(1)
	}
}

func reexec() int {
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "nettest: these tests make network namespaces and need root; run them with sudo")
		return 1
	}
	// Pdeathsig follows the thread that started the child, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "nettest:", err)
		return 1
	}
}

func prepare() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc of the new PID namespace: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys of the new network namespace: %w", err)
	}
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/run/netns", "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount a private /run/netns: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}
