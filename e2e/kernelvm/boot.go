package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/antrea-lite/podnet/e2e/kernelvm/guest"
)

// powerOff is how long the guest may take to switch itself off after its marker.
const powerOff = 10 * time.Second

// boot runs the guest until it ends and returns the exit code from its marker
// line. The emulator is ended by its process handle when ctx is over.
func boot(ctx context.Context, o options, image, initrd string) (int, error) {
	cmdline := "console=ttyS0 panic=-1"
	if !o.verbose {
		cmdline += " quiet loglevel=1"
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64",
		// la57 off: five-level page tables double the work of an emulated page walk.
		"-machine", "q35,accel=tcg", "-cpu", "max,la57=off",
		"-smp", strconv.Itoa(o.cpus), "-m", strconv.Itoa(o.memory),
		"-nodefaults", "-display", "none", "-no-reboot", "-nic", "none", "-serial", "stdio",
		"-kernel", image, "-initrd", initrd, "-append", cmdline)
	qemu.Stderr = os.Stderr
	qemu.WaitDelay = powerOff
	dieWithParent(qemu)
	stdout, err := qemu.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := qemu.Start(); err != nil {
		return 1, fmt.Errorf("%w (run `make deps`)", err)
	}
	code, found, err := console(stdout, os.Stdout, func() {
		time.AfterFunc(powerOff, func() { cancel(errors.New("the guest did not switch itself off")) })
	})
	waitErr := qemu.Wait()
	switch {
	case err != nil:
		return 1, fmt.Errorf("read the console: %w", err)
	case found:
		return code, nil
	case context.Cause(ctx) != nil:
		return 1, fmt.Errorf("the guest was stopped before its program ended: %w", context.Cause(ctx))
	default:
		return 1, fmt.Errorf("the guest ended without the line %q (kernel panic? see it with -v); emulator: %v", guest.ExitMarker, waitErr)
	}
}

// console copies the guest's output up to the marker line; seen is called when
// that comes.
func console(r io.Reader, w io.Writer, seen func()) (code int, found bool, err error) {
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadBytes('\n')
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte(guest.ExitMarker)); ok && !found {
			if n, convErr := strconv.Atoi(string(rest)); convErr == nil {
				code, found = n, true
				seen()
			}
		} else if !found && (len(line) > 0 || err == nil) {
			if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
				return 0, false, err
			}
		}
		// A terminal's read side reports its end as any error; nothing more comes.
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
				err = nil
			}
			return code, found, err
		}
	}
}
