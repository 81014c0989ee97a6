package agent

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func checkKernel() error {
	release, err := Kernel()
	if err != nil {
		return err
	}
	if Older(release, MinKernel) {
		return fmt.Errorf("kernel %s is too old: update it to Linux %s or later", release, MinKernel)
	}
	return nil
}

// Kernel returns the kernel's release.
func Kernel() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

// bootID tells one boot from another; "" where the kernel does not say.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
