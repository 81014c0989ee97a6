package linux

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const confIPv6 = "/proc/sys/net/ipv6/conf/"

// setSysctls prepares IPv6 on the container's end before it comes up. /proc/sys/net
// shows the namespace of the thread that opens it.
func setSysctls(ifName string, wantIPv6 bool) error {
	type setting struct{ file, value string }
	settings := []setting{
		// A rogue router advertisement must not give a container routes or
		// addresses, least of all in a cluster without IPv6 (CVE-2020-10749).
		{confIPv6 + ifName + "/accept_ra", "0"},
		// The link-local address, made of a MAC that is ours alone, is usable at once.
		{confIPv6 + ifName + "/accept_dad", "0"},
	}
	if wantIPv6 {
		// Runtimes switch IPv6 off in new sandboxes.
		settings = append(settings, setting{confIPv6 + "lo/disable_ipv6", "0"}, setting{confIPv6 + ifName + "/disable_ipv6", "0"})
	}
	for _, s := range settings {
		err := writeSysctl(s.file, s.value)
		if errors.Is(err, unix.ENOENT) && !wantIPv6 {
			return nil // a kernel without IPv6
		}
		if errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%w; the kernel has no IPv6 (ipv6.disable=1?): enable it or use IPv4 addresses only", err)
		}
		if err != nil {
			return fmt.Errorf("%w; /proc/sys must be writable: run privileged", err)
		}
	}
	return nil
}

func writeSysctl(file, value string) error {
	fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(value)); err != nil {
		return &os.PathError{Op: "write " + value + " to", Path: file, Err: err}
	}
	return nil
}
