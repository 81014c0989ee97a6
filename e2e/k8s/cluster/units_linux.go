package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// restartDelay keeps a unit that cannot start from taking all of the processor.
const restartDelay = time.Second

// stopTime is how long a unit may take to end when it is asked to.
const stopTime = 20 * time.Second

// units runs the processes of a spec. As process 1 it has to reap all children,
// those that others left to it too, so it cannot use os/exec, which waits for
// its own.
type units struct {
	spec spec

	mu      sync.Mutex
	byName  map[string]*running
	changed *sync.Cond // a unit has ended
}

// running is a unit that is wanted or has not ended yet.
type running struct {
	unit   unit
	wanted bool
	pid    int // 0: not running
}

func newUnits(s spec) *units {
	u := &units{spec: s, byName: map[string]*running{}}
	u.changed = sync.NewCond(&u.mu)
	for _, unit := range s.Units {
		u.byName[unit.Name] = &running{unit: unit}
	}
	return u
}

// set starts a unit, or stops it and waits until it has ended.
func (u *units) set(o order) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.byName[o.Unit]
	if r == nil {
		return fmt.Errorf("%s has no unit %q", u.spec.Name, o.Unit)
	}
	r.wanted = o.Run
	if o.Run {
		if r.pid != 0 {
			return nil
		}
		return u.start(r)
	}
	if r.pid == 0 {
		return nil
	}
	if err := syscall.Kill(r.pid, syscall.SIGTERM); err != nil {
		return err
	}
	pid := r.pid
	timer := time.AfterFunc(stopTime, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		// Still the process that was asked: its number is not free before it is reaped.
		if r.pid == pid {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	defer timer.Stop()
	for r.pid == pid {
		u.changed.Wait()
	}
	return nil
}

// start is called with the lock held, so that reap finds every child.
func (u *units) start(r *running) error {
	env := u.spec.environment()
	program, err := lookPath(r.unit.Args[0], env)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(u.spec.Dir, "log", r.unit.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	r.pid, err = syscall.ForkExec(program, r.unit.Args, &syscall.ProcAttr{
		Env: env, Dir: "/", Files: []uintptr{null.Fd(), log.Fd(), log.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		r.pid = 0
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// lookPath finds a program in the PATH of env, which is not our own.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is in no directory of PATH", name)
}

// reap waits for all children for ever and starts wanted units again.
func (u *units) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err == nil {
			u.ended(pid)
		}
	}
}

func (u *units) ended(pid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.byName {
		if r.pid != pid {
			continue
		}
		r.pid = 0
		u.changed.Broadcast()
		if r.wanted {
			time.AfterFunc(restartDelay, func() { u.again(r) })
		}
	}
}

// again starts a unit that ended by itself.
func (u *units) again(r *running) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !r.wanted || r.pid != 0 {
		return
	}
	if err := u.start(r); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		time.AfterFunc(restartDelay, func() { u.again(r) })
	}
}
