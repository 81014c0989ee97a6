package cniserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// nothingDeleted ends the server, so that all is over, and demands that no Delete was made.
func nothingDeleted(t *testing.T, n *network, stop func()) {
	t.Helper()
	stop()
	select {
	case key := <-n.gone:
		t.Errorf("%s was deleted", key)
	default:
	}
}

func TestAddConfirmed(t *testing.T) {
	n := &network{}
	socket, stop := start(t, n, gate{})
	var got cniapi.Interface
	call, err := do(t, socket, cniapi.PathAdd, request("a"), &got)
	if err != nil || got.Host != "pod1" {
		t.Fatalf("%v %+v", err, got)
	}
	if err := call.Confirm(); err != nil {
		t.Fatal(err)
	}
	nothingDeleted(t, n, stop)
}

func TestAddNotConfirmedIsUndone(t *testing.T) {
	n := &network{}
	socket, _ := start(t, n, gate{})
	call, err := do(t, socket, cniapi.PathAdd, request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	call.Close()
	if key := wait(t, n.gone); key.ContainerID != "a" {
		t.Errorf("deleted %s", key)
	}
}

// TestRepeatedAddNotConfirmedStays: the interface was delivered by an earlier call.
func TestRepeatedAddNotConfirmedStays(t *testing.T) {
	n := &network{add: func(_ context.Context, req podnet.Request) (ifstore.Interface, error) {
		return ifstore.Interface{Key: req.Key, Name: "pod1", Created: time.Now().Add(-time.Second)}, nil
	}}
	socket, stop := start(t, n, gate{})
	call, err := do(t, socket, cniapi.PathAdd, request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	call.Close()
	nothingDeleted(t, n, stop)
}

// TestSharedNetworkAddNotConfirmedStays: a container was answered with the
// interface of a sandbox that was made at the same time.
func TestSharedNetworkAddNotConfirmedStays(t *testing.T) {
	n := &network{add: func(_ context.Context, req podnet.Request) (ifstore.Interface, error) {
		return ifstore.Interface{Key: ifstore.Key{ContainerID: "sandbox", IfName: req.IfName}, Name: "pod1", Created: time.Now()}, nil
	}}
	socket, stop := start(t, n, gate{})
	call, err := do(t, socket, cniapi.PathAdd, request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	call.Close()
	nothingDeleted(t, n, stop)
}

func TestAddIsCancelledWithItsCaller(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	n := &network{add: func(ctx context.Context, _ podnet.Request) (ifstore.Interface, error) {
		close(begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ifstore.Interface{}, ctx.Err()
	}}
	socket, stop := start(t, n, gate{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := cniapi.Do(ctx, socket, cniapi.PathAdd, request("a"), nil)
		done <- err
	}()
	wait(t, begun)
	cancel()
	wait(t, ended)
	if err := wait(t, done); err == nil {
		t.Error("the caller got no error")
	}
	nothingDeleted(t, n, stop)
}

// TestSecondAddWaitsForTheFirst: an interface whose fate is open is given to nobody.
func TestSecondAddWaitsForTheFirst(t *testing.T) {
	n := &network{}
	socket, _ := start(t, n, gate{})
	first, err := do(t, socket, cniapi.PathAdd, request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		call *cniapi.Call
		err  error
	}
	second := make(chan answer, 1)
	go func() {
		call, err := cniapi.Do(context.Background(), socket, cniapi.PathAdd, request("a"), nil)
		second <- answer{call, err}
	}()
	// Another container is not held up.
	other, err := do(t, socket, cniapi.PathAdd, request("b"), nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Confirm()
	select {
	case <-second:
		t.Error("the second ADD was answered while the first was open")
	default:
	}
	first.Close()
	got := wait(t, second)
	if got.err != nil {
		t.Fatal(got.err)
	}
	got.call.Confirm()
	n.mu.Lock()
	defer n.mu.Unlock()
	last := n.calls[len(n.calls)-2:]
	if last[0] != "delete a/eth0" || last[1] != "add net a/eth0" {
		t.Errorf("calls %q", n.calls)
	}
}

// TestShutdownKeepsWhatWasAnswered: the agent ends while the plugin prints.
func TestShutdownKeepsWhatWasAnswered(t *testing.T) {
	n := &network{}
	socket, stop := start(t, n, gate{})
	call, err := do(t, socket, cniapi.PathAdd, request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer call.Close()
	nothingDeleted(t, n, stop)
}

func TestShutdownCancelsAddAndLetsDelFinish(t *testing.T) {
	begun := make(chan string, 2)
	release := make(chan struct{})
	n := &network{
		add: func(ctx context.Context, _ podnet.Request) (ifstore.Interface, error) {
			begun <- "add"
			<-ctx.Done()
			return ifstore.Interface{}, ctx.Err()
		},
		del: func(ctx context.Context, _ ifstore.Key) error {
			begun <- "del"
			<-release
			return ctx.Err()
		},
	}
	socket, stop := start(t, n, gate{})
	errs := make(chan error, 2)
	for _, path := range []string{cniapi.PathAdd, cniapi.PathDelete} {
		go func() {
			_, err := cniapi.Do(context.Background(), socket, path, request(path[len(path)-3:]), nil)
			errs <- err
		}()
	}
	wait(t, begun)
	wait(t, begun)
	go stop()
	var e *cniapi.Error
	if err := wait(t, errs); !errors.As(err, &e) || e.Code != cniapi.CodeTryAgain {
		t.Errorf("ADD during shutdown: %v", err)
	}
	close(release)
	if err := wait(t, errs); err != nil {
		t.Errorf("DEL during shutdown: %v", err)
	}
	stop()
}
