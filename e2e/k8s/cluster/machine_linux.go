package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// bootTime is how long process 1 may take to make its file systems.
const bootTime = 20 * time.Second

// machine is a set of namespaces with a process 1: a node or the control plane.
type machine struct {
	Name string
	dir  string
}

// boot starts process 1 and waits until its namespaces are ready.
func (m *machine) boot(ctx context.Context, s spec, bound bool) error {
	if err := s.write(); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log", "init.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	line, err := openLifeline(bound)
	if err != nil {
		return err
	}
	defer line.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"podnet-k8s-" + m.Name}
	cmd.Env = append(os.Environ(), mark, initVariable+"="+s.path())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{line}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w: namespaces need root", m.Name, err)
	}
	// It ends when it is killed, perhaps by another process than this one.
	go func() { _ = cmd.Wait() }()
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("%s ended at once: %s", m.Name, m.logTail("init"))
	}
	if err := os.WriteFile(m.pidFile(), []byte(id), 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	return lab.Until(ctx, func() error {
		if !m.alive() {
			return fmt.Errorf("%s ended: %s", m.Name, m.logTail("init"))
		}
		_, err := os.Stat(m.Root(orderSocket))
		return err
	})
}

// openLifeline returns what process 1 gets as its lifeline: the read end of a
// pipe whose write end stays open as long as this process lives.
func openLifeline(bound bool) (*os.File, error) {
	if !bound {
		return os.Open(os.DevNull)
	}
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	// The write end is a bare descriptor, which no finalizer closes.
	return os.NewFile(uintptr(fds[0]), "lifeline"), nil
}

// identify names a process by its number and its start, since numbers are used again.
func identify(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The command in parentheses may hold anything; the state comes after it.
	_, after, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	fields := strings.Fields(string(after))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fmt.Sprint(pid, " ", fields[19]), nil
}

func (m *machine) pidFile() string { return filepath.Join(m.dir, "pid") }

// PID is the number of process 1, 0 when there is none.
func (m *machine) PID() int {
	raw, err := os.ReadFile(m.pidFile())
	if err != nil {
		return 0
	}
	number, _, _ := strings.Cut(string(raw), " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	if id, err := identify(pid); err != nil || id != string(raw) {
		return 0
	}
	return pid
}

func (m *machine) alive() bool { return m.PID() != 0 }

// Root is a path of the machine's as this process can open it. Absolute symbolic
// links on it lead into this process's own root.
func (m *machine) Root(path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", m.PID()), path)
}

// NetNS is the path of the network namespace.
func (m *machine) NetNS() string { return fmt.Sprintf("/proc/%d/ns/net", m.PID()) }

// Stop stops a unit, such as "kubelet", until Start.
func (m *machine) Stop(unit string) error { return m.give(order{Unit: unit}) }

// Start starts a unit that was stopped.
func (m *machine) Start(unit string) error { return m.give(order{Unit: unit, Run: true}) }

func (m *machine) give(o order) error {
	if err := give(m.Root("/"), o); err != nil {
		return fmt.Errorf("%s: %s: %w", m.Name, o.Unit, err)
	}
	return nil
}

// kill is a power cut: all processes end at once.
func (m *machine) kill(ctx context.Context) error {
	pid := m.PID()
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", m.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return lab.Until(ctx, func() error {
		if m.alive() {
			return fmt.Errorf("process 1 of %s is still there", m.Name)
		}
		return nil
	})
}

// Command prepares a command inside the machine.
func (m *machine) Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	pid := m.PID()
	if pid == 0 {
		return nil, fmt.Errorf("%s does not run", m.Name)
	}
	s, err := readSpec(filepath.Join(m.dir, "spec.json"))
	if err != nil {
		return nil, err
	}
	flags := []string{"--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(flags, args...)...)
	cmd.Env = s.environment()
	return cmd, nil
}

// Run runs a command inside the machine and returns what it printed.
func (m *machine) Run(ctx context.Context, args ...string) (string, error) {
	cmd, err := m.Command(ctx, args...)
	if err != nil {
		return "", err
	}
	return output(cmd)
}

// output runs a command; the error has what it said.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// Log returns the last lines of a unit's log.
func (m *machine) Log(unit string, last int) string {
	raw, err := os.ReadFile(filepath.Join(m.dir, "log", unit+".log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-last):], "\n")
}

func (m *machine) logTail(unit string) string { return m.Log(unit, 10) }
