package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// initVariable holds the path of the spec when the program is a process 1.
const initVariable = "PODNET_K8S_INIT"

// lifeline is the descriptor of a pipe whose other end the starter holds, when
// the namespaces are to end with it.
const lifeline = 3

// Main turns the program into process 1 of a node or the control plane when it
// was started as one, and otherwise returns at once.
func Main() {
	path := os.Getenv(initVariable)
	if path == "" {
		return
	}
	err := runInit(path)
	fmt.Fprintln(os.Stderr, "init:", err)
	os.Exit(1)
}

// runInit does not return as long as all is well: the namespaces end when it is killed.
func runInit(path string) error {
	s, err := readSpec(path)
	if err != nil {
		return err
	}
	unix.CloseOnExec(lifeline)
	go endWithStarter()
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := s.mount(); err != nil {
		return err
	}
	for name, value := range s.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0); err != nil {
			return err
		}
	}
	u := newUnits(s)
	for _, unit := range s.Units {
		if unit.Start {
			if err := u.set(order{Unit: unit.Name, Run: true}); err != nil {
				return err
			}
		}
	}
	// Last: who can connect knows that the namespaces are ready.
	l, err := net.Listen("unix", orderSocket)
	if err != nil {
		return err
	}
	go u.reap()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go serveOrder(conn, u)
	}
}

// endWithStarter waits until the pipe's other end is closed. Without a pipe the
// descriptor is /dev/null's, see boot.
func endWithStarter() {
	f := os.NewFile(lifeline, "lifeline")
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	_, _ = f.Read(make([]byte, 1))
	os.Exit(0)
}

func serveOrder(conn net.Conn, u *units) {
	defer conn.Close()
	var o order
	err := json.NewDecoder(conn).Decode(&o)
	if err == nil {
		err = u.set(o)
	}
	var out outcome
	if err != nil {
		out.Error = err.Error()
	}
	// Who asked may be gone.
	_ = json.NewEncoder(conn).Encode(out)
}

// give asks process 1, whose /run is at root, for an order.
func give(root string, o order) error {
	conn, err := net.Dial("unix", filepath.Join(root, orderSocket))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(o); err != nil {
		return err
	}
	var out outcome
	if err := json.NewDecoder(conn).Decode(&out); err != nil {
		return err
	}
	if out.Error != "" {
		return errors.New(out.Error)
	}
	return nil
}

// environment is the machine's, with the spec's directories before PATH.
func (s spec) environment() []string {
	env := make([]string, 0, len(os.Environ()))
	for _, v := range os.Environ() {
		if v != mark && !strings.HasPrefix(v, "PATH=") && !strings.HasPrefix(v, initVariable+"=") {
			env = append(env, v)
		}
	}
	path := append(append([]string{}, s.Path...), os.Getenv("PATH"))
	return append(env, mark, "PATH="+strings.Join(path, ":"))
}
