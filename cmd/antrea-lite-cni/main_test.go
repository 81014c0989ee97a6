package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/cmd/internal/sockettest"
)

const (
	// role makes the test binary run as the plugin, or, under the name
	// fakeIPAM, as the plugin for addresses that it calls. So the tests need no
	// compiler where they run, and -race sees the plugin, too.
	role     = "ANTREA_LITE_CNI_TEST"
	fakeIPAM = "fake-ipam"
	patience = 20 * time.Second
)

func TestMain(m *testing.M) {
	if os.Getenv(role) != "" {
		if strings.HasPrefix(filepath.Base(os.Args[0]), fakeIPAM) {
			os.Exit(runFakeIPAM())
		}
		os.Exit(run())
	}
	os.Exit(testMain(m))
}

// ipamDir has a copy of the test binary by the name fakeIPAM.
var ipamDir string

func testMain(m *testing.M) int {
	var err error
	if ipamDir, err = copySelf(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(ipamDir)
	code := m.Run()
	if err := goleak.Find(sockettest.Lasting()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func copySelf() (dir string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "ipam"); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, fakeIPAM+suffixes()[0]), b, 0o755)
}

// call is one run of the plugin.
type call struct {
	verb  string
	conf  string
	env   map[string]string // over the usual values; "-" removes the variable
	stdin io.Reader         // instead of conf
}

func (c call) command(t *testing.T) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	env := map[string]string{
		"CNI_COMMAND": c.verb, "CNI_CONTAINERID": "c1", "CNI_NETNS": sandbox, "CNI_IFNAME": "eth0",
		"CNI_PATH": "/nonexistent", role: "1",
	}
	for k, v := range c.env {
		env[k] = v
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LOG=" + env["LOG"]}
	for k, v := range env {
		if v != "-" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	cmd.Stdin = c.stdin
	if c.stdin == nil {
		cmd.Stdin = strings.NewReader(c.conf)
	}
	return cmd
}

// run runs the plugin; a CNI error comes back as *types.Error.
func (c call) run(t *testing.T) ([]byte, error) {
	t.Helper()
	cmd := c.command(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if stderr.Len() > 0 {
		t.Logf("stderr: %s", stderr.String())
	}
	return stdout.Bytes(), cniError(stdout.Bytes(), err)
}

func cniError(stdout []byte, err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	e := &types.Error{}
	if jsonErr := json.Unmarshal(stdout, e); jsonErr != nil || e.Msg == "" {
		return errors.Join(err, jsonErr)
	}
	return e
}

// wantError demands a CNI error with that code, these words and a remedy.
func wantError(t *testing.T, err error, code uint, words ...string) {
	t.Helper()
	var e *types.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want CNI code %d", err, code)
	}
	if e.Code != code {
		t.Errorf("code %d, want %d: %s", e.Code, code, e)
	}
	for _, w := range words {
		if !strings.Contains(e.Msg+"; "+e.Details, w) {
			t.Errorf("error %q does not say %q", e, w)
		}
	}
	if e.Details == "" {
		t.Errorf("error %q says no remedy", e)
	}
}

// agent is a fake agent.
type agent struct {
	socket string

	mu        sync.Mutex
	requests  map[string][]*cniapi.Request // by path
	confirmed chan error                   // of every ADD: nil, or why the body broke off

	// before runs before the answer; an error is the answer.
	before func(path string, req *cniapi.Request, gone <-chan struct{}) *cniapi.Error
	answer cniapi.Interface
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{socket: sockettest.Path(t), requests: map[string][]*cniapi.Request{}, confirmed: make(chan error, 16)}
	l := sockettest.Listen(t, a.socket)
	srv := &http.Server{Handler: http.HandlerFunc(a.serve)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return a
}

func (a *agent) serve(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	rc.EnableFullDuplex()
	req := &cniapi.Request{}
	if err := json.NewDecoder(r.Body).Decode(req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.requests[r.URL.Path] = append(a.requests[r.URL.Path], req)
	a.mu.Unlock()
	gone, end := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			close(gone)
		}
		end <- err
	}()
	status, body := http.StatusOK, any(a.answer)
	if a.before != nil {
		if e := a.before(r.URL.Path, req, gone); e != nil {
			status, body = http.StatusServiceUnavailable, e
		}
	}
	b, _ := json.Marshal(body)
	w.Header().Set("Content-Length", itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
	rc.Flush()
	err := <-end
	if r.URL.Path == cniapi.PathAdd {
		a.confirmed <- err
	}
}

// one returns the only request of that path.
func (a *agent) one(t *testing.T, path string) *cniapi.Request {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.requests[path]); n != 1 {
		t.Fatalf("%d requests to %s, want 1", n, path)
	}
	return a.requests[path][0]
}

// end waits for the end of an ADD.
func (a *agent) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-a.confirmed:
		return err
	case <-time.After(patience):
		t.Fatal("the ADD neither confirmed nor broke off")
		return nil
	}
}

// conf builds a network configuration for that agent; more is further JSON members.
func (a *agent) conf(version, more string) string {
	c := `{"name": "net", "type": "antrea-lite-cni", "agentSocket": ` + quoted(a.socket)
	if version != "" {
		c += `, "cniVersion": "` + version + `"`
	}
	if more != "" {
		c += ", " + more
	}
	return c + "}"
}

// quoted is s in JSON: the name of a pipe has backslashes.
func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }
