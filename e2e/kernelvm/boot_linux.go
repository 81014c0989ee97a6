package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the emulator when this process is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
