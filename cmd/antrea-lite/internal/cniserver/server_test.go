package cniserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/ipam"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/socket"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/cmd/internal/sockettest"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, sockettest.Lasting()) }

const patience = 10 * time.Second

// network is a fake Network: it records calls and does what the test says.
type network struct {
	add   func(context.Context, podnet.Request) (ifstore.Interface, error)
	del   func(context.Context, ifstore.Key) error
	check error
	gc    func(network string, valid []ifstore.Key) error

	mu    sync.Mutex
	calls []string
	gone  chan ifstore.Key // every Delete
}

func (n *network) note(call string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
}

func (n *network) Add(ctx context.Context, name string, req podnet.Request) (ifstore.Interface, error) {
	n.note("add " + name + " " + req.Key.String())
	if n.add != nil {
		return n.add(ctx, req)
	}
	return ifstore.Interface{Key: req.Key, Name: "pod1", Created: time.Now()}, nil
}

func (n *network) Delete(ctx context.Context, key ifstore.Key, _ string) error {
	n.note("delete " + key.String())
	var err error
	if n.del != nil {
		err = n.del(ctx, key)
	}
	n.gone <- key
	return err
}

func (n *network) Check(context.Context, ifstore.Key, string, *cniapi.Want) error { return n.check }

func (n *network) GC(_ context.Context, name string, valid []ifstore.Key) error {
	return n.gc(name, valid)
}

// gate is a fake Gate.
type gate struct {
	started error
	ready   *cniapi.Error
}

func (g gate) Started() error { return g.started }

func (g gate) Ready() *cniapi.Error { return g.ready }

// start serves the verbs on a socket; stop ends the server as the agent does.
func start(t *testing.T, n *network, g gate) (name string, stop func()) {
	t.Helper()
	n.gone = make(chan ifstore.Key, 16)
	name = sockettest.Path(t)
	l, err := socket.Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	New(Config{Network: n, Gate: g}).Register(mux)
	ctx, cancel := context.WithCancel(context.Background())
	srv := &http.Server{Handler: mux, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(l)
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			limit, done := context.WithTimeout(context.Background(), patience)
			defer done()
			if err := srv.Shutdown(limit); err != nil {
				t.Errorf("shutdown: %v", err)
				srv.Close()
			}
			<-served
		})
	}
	t.Cleanup(stop)
	return name, stop
}

func request(id string) *cniapi.Request {
	return &cniapi.Request{Attachment: cniapi.Attachment{ContainerID: id, IfName: "eth0"}, NetNS: "/run/netns/x", Network: "net"}
}

func do(t *testing.T, socket, path string, req *cniapi.Request, resp any) (*cniapi.Call, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return cniapi.Do(ctx, socket, path, req, resp)
}

// wait returns what comes on c.
func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// TestDelGoesOnWithoutItsCaller, because half a DEL helps nobody.
func TestDelGoesOnWithoutItsCaller(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	n := &network{del: func(ctx context.Context, _ ifstore.Key) error {
		close(begun)
		<-release
		return ctx.Err()
	}}
	socket, _ := start(t, n, gate{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := cniapi.Do(ctx, socket, cniapi.PathDelete, request("a"), nil)
		done <- err
	}()
	wait(t, begun)
	cancel()
	if err := wait(t, done); err == nil {
		t.Error("no error for the caller that left")
	}
	close(release)
	wait(t, n.gone)
}

func TestGate(t *testing.T) {
	n := &network{gc: func(string, []ifstore.Key) error { return nil }}
	socket, stop := start(t, n, gate{started: errors.New("OVSDB is away"), ready: &cniapi.Error{Code: 50, Msg: "OVSDB is away"}})
	for _, path := range []string{cniapi.PathAdd, cniapi.PathDelete, cniapi.PathCheck, cniapi.PathGC, cniapi.PathStatus} {
		_, err := do(t, socket, path, request("a"), nil)
		code := uint(cniapi.CodeTryAgain)
		if path == cniapi.PathStatus {
			code = 50
		}
		var e *cniapi.Error
		if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Msg, "OVSDB is away") {
			t.Errorf("%s: %v, want code %d", path, err, code)
		}
	}
	nothingDeleted(t, n, stop)
	if len(n.calls) > 0 {
		t.Errorf("calls %q before the agent knew the bridge", n.calls)
	}
}

func TestGCPassesTheNetwork(t *testing.T) {
	got := make(chan string, 1)
	n := &network{gc: func(name string, valid []ifstore.Key) error {
		got <- fmt.Sprint(name, valid)
		return nil
	}}
	socket, _ := start(t, n, gate{})
	req := &cniapi.Request{Network: "blue", Valid: []cniapi.Attachment{{ContainerID: "a", IfName: "eth0"}}}
	if _, err := do(t, socket, cniapi.PathGC, req, nil); err != nil {
		t.Fatal(err)
	}
	if s := wait(t, got); s != "blue[a/eth0]" {
		t.Error(s)
	}
}

// TestErrors: causes become codes, with who, when and a remedy.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		verb string
		code uint
	}{
		{podnet.ErrTryAgain, "DEL", 11}, {podnet.ErrNotConnected, "ADD", 11}, {podnet.ErrOutcomeUnknown, "ADD", 11},
		{context.DeadlineExceeded, "ADD", 11}, {podnet.ErrNoNumber, "ADD", 11}, {podnet.ErrNotFound, "CHECK", 3},
		{fmt.Errorf("%w: %w", podnet.ErrBadRequest, ipam.ErrNoAddress), "ADD", 101}, {podnet.ErrBadRequest, "ADD", 7},
		{podnet.ErrOvertaken, "ADD", 107}, {podnet.ErrPortExists, "ADD", 103}, {&podnet.PortError{Name: "pod1", OFPort: -1, Text: "no device"}, "ADD", 104},
		{errors.New("strange"), "ADD", 100}, {errors.New("the MAC differs"), "CHECK", 102}, {podnet.ErrNotConnected, "CHECK", 11},
		{&podnet.OpError{Op: "add", Step: "link", Err: podnet.ErrPortExists}, "ADD", 103},
	} {
		e := wireError(c.verb, request("a"), time.Second, fmt.Errorf("step: %w", c.err))
		if e.Code != c.code {
			t.Errorf("%v: code %d, want %d", c.err, e.Code, c.code)
		}
		if e.Details == "" || !strings.Contains(e.Msg, c.err.Error()) {
			t.Errorf("%v: %+v", c.err, e)
		}
		var op *podnet.OpError
		if !errors.As(c.err, &op) && !strings.Contains(e.Msg, "container a interface eth0 after 1s") {
			t.Errorf("%v: %q does not say whose it is", c.err, e.Msg)
		}
	}
}

func TestBadRequests(t *testing.T) {
	n := &network{}
	socket, stop := start(t, n, gate{})
	change := func(f func(*cniapi.Request)) *cniapi.Request {
		r := request("a")
		f(r)
		return r
	}
	for _, c := range []struct {
		name, path string
		req        *cniapi.Request
		code       uint
		words      string
	}{
		{"no id", cniapi.PathAdd, change(func(r *cniapi.Request) { r.ContainerID = "" }), 4, "container id"},
		{"no ifname", cniapi.PathDelete, change(func(r *cniapi.Request) { r.IfName = "" }), 4, "interface name"},
		{"no netns", cniapi.PathAdd, change(func(r *cniapi.Request) { r.NetNS = "" }), 4, "namespace"},
		{"vlan", cniapi.PathAdd, change(func(r *cniapi.Request) { r.VLAN = 4095 }), 7, "4095"},
		{"mac", cniapi.PathAdd, change(func(r *cniapi.Request) { r.MAC = "nope" }), 7, "nope"},
		{"multicast mac", cniapi.PathAdd, change(func(r *cniapi.Request) { r.MAC = "01:00:5e:00:00:01" }), 7, "01:00:5e:00:00:01"},
		{"address", cniapi.PathAdd, change(func(r *cniapi.Request) { r.IPAM, r.Addresses = "dhcp", []cniapi.Address{{}} }), 7, "dhcp"},
		{"route", cniapi.PathAdd, change(func(r *cniapi.Request) { r.IPAM, r.Routes = "dhcp", []cniapi.Route{{}} }), 7, "dhcp"},
	} {
		_, err := do(t, socket, c.path, c.req, nil)
		var e *cniapi.Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Msg+e.Details, c.words) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	nothingDeleted(t, n, stop)
}

// TestForeignClients: whatever is said on the socket, the server answers or hangs up and goes on.
func TestForeignClients(t *testing.T) {
	n := &network{}
	socket, _ := start(t, n, gate{})
	for _, said := range []string{
		"", "\r\n\r\n", "GET /v1/cni/add HTTP/1.1\r\nHost: a\r\n\r\n", "POST /v1/cni/add HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{nope",
		"POST /v1/cni/add HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "POST /v1/cni/delete HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n[]",
		"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	} {
		conn, err := cniapi.Dial(t.Context(), socket)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, said)
		if half, ok := conn.(*net.UnixConn); ok { // a pipe can only be closed whole
			half.CloseWrite()
			conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("%q: %v", said, err)
			}
		}
		conn.Close()
	}
	// A client that ends the body with the request confirms in advance.
	conn, err := cniapi.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"containerID": "c", "ifName": "eth0", "netns": "/x"}`
	fmt.Fprintf(conn, "POST /v1/cni/add HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	conn.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(b), `"host":"pod1"`) {
		t.Errorf("%v %s", err, b)
	}
	select {
	case key := <-n.gone:
		t.Errorf("%s was deleted", key)
	default:
	}
}
