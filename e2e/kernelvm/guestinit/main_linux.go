// Guestinit is process 1 of kernelvm's guest: it mounts what a program expects
// of a machine, loads the kernel modules, runs the program, prints its exit
// code behind the marker and switches the guest off.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/e2e/kernelvm/guest"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Println("guestinit:", err)
		code = 1
	}
	fmt.Printf("%s%d\n", guest.ExitMarker, code)
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("guestinit: power off:", err)
	}
	select {} // process 1 must not end: the kernel would panic
}

func run() (int, error) {
	if err := mounts(); err != nil {
		return 1, err
	}
	raw, err := os.ReadFile(guest.ConfigPath)
	if err != nil {
		return 1, err
	}
	var conf guest.Config
	if err := json.Unmarshal(raw, &conf); err != nil {
		return 1, fmt.Errorf("%s: %w", guest.ConfigPath, err)
	}
	for _, m := range conf.Modules {
		if err := load(m); err != nil {
			return 1, err
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return 1, err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return 1, err
	}
	if err := ripen(); err != nil {
		return 1, err
	}
	cmd := exec.Command(conf.Program, conf.Args...)
	cmd.Dir = "/root"
	cmd.Env = []string{"PATH=/usr/bin:/usr/sbin:/bin:/sbin", "HOME=/root", "TMPDIR=/tmp", "TERM=dumb"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	default:
		return 1, err
	}
}

// ripeAfter is how long the guest has to be up before its program starts. An
// ovs-vswitchd 3.1 that starts in the first seconds of a kernel may count no
// processor ("Overriding n-handler-threads to 0") and then loses every packet
// that has to be looked at.
const ripeAfter = 13 * time.Second

func ripen() error {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return fmt.Errorf("read the uptime: %w", err)
	}
	time.Sleep(ripeAfter - time.Duration(up.Nano()))
	return nil
}

func mounts() error {
	for _, m := range []struct{ kind, path, options string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"devtmpfs", "/dev", "mode=0755"},
		{"tmpfs", "/tmp", "mode=1777"},
		{"tmpfs", "/run", "mode=0755"},
	} {
		if err := os.MkdirAll(m.path, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.path, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.path, err)
		}
	}
	return os.MkdirAll("/run/netns", 0o755)
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}
