package podnet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBoom = errors.New("boom")

func boom(context.Context) error { return errBoom }

// start runs a Network over w until the test ends.
func start(t *testing.T, cfg podnet.Config) *podnet.Network {
	t.Helper()
	n, stop := podnettest.Start(t, cfg)
	t.Cleanup(stop)
	return n
}

func mustAdd(t *testing.T, n *podnet.Network, id string) ifstore.Interface {
	t.Helper()
	iface, err := n.Add(t.Context(), podnettest.NewRequest(id))
	if err != nil {
		t.Fatalf("Add: %v", err)
	}
	return iface
}

func mustDelete(t *testing.T, n *podnet.Network, id string) {
	t.Helper()
	if err := n.Delete(t.Context(), keyOf(id)); err != nil {
		t.Fatalf("Delete: %v", err)
	}
}

func keyOf(id string) ifstore.Key { return podnettest.NewRequest(id).Key }

// wantNothingLeft fails unless the world and the store are empty.
func wantNothingLeft(t *testing.T, w *podnettest.World, n *podnet.Network) {
	t.Helper()
	if left := w.Leftovers(); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if ifaces := n.Interfaces(); len(ifaces) > 0 {
		t.Errorf("left in the store: %+v", ifaces)
	}
	if tracks, adds, _, _ := n.Kept(); tracks > 0 || adds > 0 {
		t.Errorf("%d interfaces and %d Adds are remembered", tracks, adds)
	}
}

// wantReady fails unless the interface is ready with flows on exactly its number.
func wantReady(t *testing.T, w *podnettest.World, n *podnet.Network, id string) {
	t.Helper()
	iface := get(t, n, id)
	if iface.State != ifstore.StateReady || iface.Waiting != "" {
		t.Errorf("%s is %s (waiting for %q), want ready", id, iface.State, iface.Waiting)
	}
	if diff := cmp.Diff([]uint32{iface.OFPort}, w.Flows.Of(iface.Key)); diff != "" {
		t.Errorf("flows of %s (-record +switch):\n%s", id, diff)
	}
	ofport, err := w.Bridge.OFPort(t.Context(), podnet.PortKey{Name: iface.Name, Gen: iface.Gen})
	if err != nil || ofport != iface.OFPort {
		t.Errorf("port of %s has number %d (%v), the record says %d", id, ofport, err, iface.OFPort)
	}
}

func get(t *testing.T, n *podnet.Network, id string) ifstore.Interface {
	t.Helper()
	for _, iface := range n.Interfaces() {
		if iface.Key == keyOf(id) {
			return iface
		}
	}
	t.Fatalf("%s is not in the store", id)
	return ifstore.Interface{}
}

// eventually waits for cond, which other goroutines make true, with a deadline.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		<-tick.C
	}
}

// asyncQuick makes retries so short that tests in real time need not wait.
var asyncQuick = async.Config{Queue: async.QueueConfig{MinRetry: time.Millisecond, MaxRetry: 5 * time.Millisecond}}
