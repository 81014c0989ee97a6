package vswitchtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// schema is where Debian's openvswitch packages put the database schema.
const schema = "/usr/share/openvswitch/vswitch.ovsschema"

// Switch is one private Open vSwitch. Its methods are for one goroutine.
type Switch struct {
	Dir string // sockets, pid files, database and logs

	db, vswitchd *exec.Cmd
}

// Start starts a switch and stops it when the test ends. It fails the test
// when Open vSwitch is not installed.
func Start(tb testing.TB) *Switch {
	tb.Helper()
	s, err := New()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("ovs-vswitchd log:\n%s", s.LogTail(40))
		}
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// New starts ovsdb-server and ovs-vswitchd and waits until both answer.
func New() (*Switch, error) {
	for _, tool := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is missing (%w): install Debian's openvswitch-switch", tool, err)
		}
	}
	// Short on purpose: a unix socket's path has 108 bytes at most.
	dir, err := os.MkdirTemp("/tmp", "ovs")
	if err != nil {
		return nil, err
	}
	s := &Switch{Dir: dir}
	out, err := exec.Command("ovsdb-tool", "create", s.path("conf.db"), schema).CombinedOutput()
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("ovsdb-tool create: %w: %s", err, out)
	}
	if err := s.StartDB(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if _, err := s.Vsctl("--no-wait", "init"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.StartVswitchd(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close stops both daemons and removes the directory.
func (s *Switch) Close() error {
	err := errors.Join(s.KillVswitchd(), s.StopDB())
	return errors.Join(err, os.RemoveAll(s.Dir))
}

// DBSock is the path of the OVSDB server's unix socket.
func (s *Switch) DBSock() string { return s.path("db.sock") }

// MgmtSock is the path of a bridge's OpenFlow management socket.
func (s *Switch) MgmtSock(bridge string) string { return s.path(bridge + ".mgmt") }

// StartDB starts ovsdb-server on the existing database.
func (s *Switch) StartDB() error {
	cmd, err := s.start("ovsdb-server", s.path("conf.db"), "--remote=punix:"+s.DBSock(),
		"--pidfile="+s.path("ovsdb-server.pid"), "--unixctl="+s.path("db.ctl"), "--log-file="+s.path("ovsdb-server.log"), "-vconsole:off")
	if err != nil {
		return err
	}
	s.db = cmd
	return s.waitCtl("db.ctl")
}

// StopDB ends ovsdb-server; the database file stays.
func (s *Switch) StopDB() error { return stop(&s.db, syscall.SIGTERM) }

// StartVswitchd starts ovs-vswitchd and waits until it answers on its control socket.
func (s *Switch) StartVswitchd() error {
	cmd, err := s.start("ovs-vswitchd", "unix:"+s.DBSock(),
		"--pidfile="+s.path("ovs-vswitchd.pid"), "--unixctl="+s.path("vswitchd.ctl"), "--log-file="+s.path("ovs-vswitchd.log"), "-vconsole:off")
	if err != nil {
		return err
	}
	s.vswitchd = cmd
	return s.waitCtl("vswitchd.ctl")
}

// StopVswitchd asks ovs-vswitchd to end and waits for it; userspace taps go with it.
func (s *Switch) StopVswitchd() error { return stop(&s.vswitchd, syscall.SIGTERM) }

// KillVswitchd ends ovs-vswitchd with SIGKILL.
func (s *Switch) KillVswitchd() error { return stop(&s.vswitchd, syscall.SIGKILL) }

// PauseVswitchd freezes ovs-vswitchd (SIGSTOP): rows commit, no number comes.
func (s *Switch) PauseVswitchd() error { return s.vswitchd.Process.Signal(syscall.SIGSTOP) }

// ResumeVswitchd ends a pause.
func (s *Switch) ResumeVswitchd() error { return s.vswitchd.Process.Signal(syscall.SIGCONT) }

// VswitchdPID is the process id of ovs-vswitchd.
func (s *Switch) VswitchdPID() int { return s.vswitchd.Process.Pid }

// Vsctl runs ovs-vsctl against this switch and returns its trimmed output.
func (s *Switch) Vsctl(args ...string) (string, error) {
	return s.run("ovs-vsctl", append([]string{"--db=unix:" + s.DBSock(), "--timeout=20"}, args...)...)
}

// Ofctl runs ovs-ofctl -O OpenFlow15. Name a bridge by MgmtSock with "unix:" before it.
func (s *Switch) Ofctl(args ...string) (string, error) {
	return s.run("ovs-ofctl", append([]string{"-O", "OpenFlow15", "--timeout=20"}, args...)...)
}

// Appctl runs ovs-appctl against ovs-vswitchd.
func (s *Switch) Appctl(args ...string) (string, error) {
	return s.run("ovs-appctl", append([]string{"--target=" + s.path("vswitchd.ctl"), "--timeout=20"}, args...)...)
}

// AddBridge makes a bridge as the agent would: fail_mode secure, OpenFlow 1.0,
// 1.3 and 1.5. datapath is "netdev" or "system".
func (s *Switch) AddBridge(name, datapath string) error {
	_, err := s.Vsctl("add-br", name, "--", "set", "bridge", name, "datapath_type="+datapath,
		"fail_mode=secure", "protocols=OpenFlow10,OpenFlow13,OpenFlow15")
	return err
}

// LogTail returns the last n lines of ovs-vswitchd's log.
func (s *Switch) LogTail(n int) string {
	b, err := os.ReadFile(s.path("ovs-vswitchd.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (s *Switch) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *Switch) env() []string {
	return append(os.Environ(), "OVS_RUNDIR="+s.Dir, "OVS_LOGDIR="+s.Dir, "OVS_DBDIR="+s.Dir, "OVS_SYSCONFDIR="+s.Dir)
}

func (s *Switch) start(name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = s.env()
	stderr, err := os.OpenFile(s.path(name+".stderr"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return cmd, nil
}

func (s *Switch) run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = s.env()
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return text, nil
}

// waitCtl waits until the daemon behind a control socket answers.
func (s *Switch) waitCtl(ctl string) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err := s.run("ovs-appctl", "--target="+s.path(ctl), "--timeout=5", "version")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the daemon behind %s does not answer: %w", ctl, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stop signals the process and reaps it. Nothing running: nil.
func stop(cmd **exec.Cmd, sig syscall.Signal) error {
	c := *cmd
	if c == nil {
		return nil
	}
	*cmd = nil
	// A paused process takes SIGTERM only once it runs again.
	errs := []error{c.Process.Signal(sig), c.Process.Signal(syscall.SIGCONT)}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", c.Path, err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
