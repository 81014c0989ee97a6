// Demo shows podnet at work on this machine: six Pods on a real Open vSwitch,
// explained step by step. `make demo` builds and runs it.
//
// Everything happens in private network, mount and PID namespaces with a /tmp
// of their own, so that nothing can be left on the machine, not even by a
// SIGKILL; at the end the demo lists the machine again and compares.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// insideEnv marks the process that plays; the one without it watches the machine.
const insideEnv = "PODNET_DEMO_INSIDE"

// fadeTime is how long the kernel may take to end what a killed namespace held.
const fadeTime = 5 * time.Second

type options struct {
	agent, cni, datapath string
}

func main() {
	var o options
	flag.StringVar(&o.agent, "agent", "bin/antrea-lite", "the agent's binary")
	flag.StringVar(&o.cni, "cni", "bin/antrea-lite-cni", "the plugin's binary")
	flag.StringVar(&o.datapath, "datapath", "netdev", "datapath of Open vSwitch: netdev (userspace) or system (kernel)")
	flag.Parse()
	if os.Getenv(insideEnv) == "" {
		os.Exit(watch())
	}
	nettest.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := play(ctx, o, newScreen(os.Stdout))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// watch lists the machine, lets a child play, and lists the machine again.
func watch() int {
	out := newScreen(os.Stdout)
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "demo: network namespaces need root: run `sudo make demo`")
		return 1
	}
	mark := fmt.Sprintf("%s=%d", insideEnv, os.Getpid())
	before, err := machine(mark)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	// Ctrl-C reaches the whole foreground group: the children end, this process still has to look.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), mark)
	// The signal follows the thread that started the child, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	interrupted := false
	select {
	case err = <-done:
	case sig := <-signals:
		interrupted = true
		// Signals sent to this process alone are passed on; the namespaces end with their first process.
		_ = cmd.Process.Signal(sig)
		err = <-done
	}
	code := 0
	switch {
	case interrupted:
		out.note("interrupted")
		code = 130
	case err != nil:
		code = 1
	}
	if err := gone(mark, before); err != nil {
		out.fail("something is left on the machine", err)
		return 1
	}
	out.ok("nothing is left on the machine: no process, network namespace, interface or mount that was not there before")
	return code
}

// machine lists the machine and the demo's own processes.
func machine(mark string) (lab.Listing, error) {
	list, err := lab.Machine()
	if err != nil {
		return nil, err
	}
	list["process"], err = lab.Processes(mark)
	return list, err
}

// gone waits until nothing is there that was not there before.
func gone(mark string, before lab.Listing) error {
	ctx, cancel := context.WithTimeout(context.Background(), fadeTime)
	defer cancel()
	return lab.Until(ctx, func() error {
		after, err := machine(mark)
		if err != nil {
			return err
		}
		if left := after.Minus(before); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}

// furnish gives the private mount namespace a /tmp of its own and copies the
// binaries there, because the old /tmp, which may hold them, is covered.
func furnish(o options) (options, error) {
	files := map[string][]byte{}
	for _, path := range []*string{&o.agent, &o.cni} {
		raw, err := os.ReadFile(*path)
		if err != nil {
			return o, fmt.Errorf("%w: run `make build` first", err)
		}
		*path = filepath.Join("/tmp/bin", filepath.Base(*path))
		files[*path] = raw
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777"); err != nil {
		return o, fmt.Errorf("mount a private /tmp: %w", err)
	}
	if err := os.Mkdir("/tmp/bin", 0o755); err != nil {
		return o, err
	}
	for path, raw := range files {
		if err := os.WriteFile(path, raw, 0o755); err != nil {
			return o, err
		}
	}
	return o, nil
}
