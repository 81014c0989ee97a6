package windows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// vnics are the host interfaces of a fake node.
type vnics struct {
	mu       sync.Mutex
	there    map[string]hostif.Adapter // by alias
	err      error
	listings int
}

func (v *vnics) list(context.Context) ([]hostif.Adapter, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listings++
	list := []hostif.Adapter{{Alias: "Ethernet", Index: 1, MTU: 1500, Up: true}}
	for _, a := range v.there {
		list = append(list, a)
	}
	return list, v.err
}

func (v *vnics) has(port string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.there[hostif.Alias(port)]
	return ok
}

func (v *vnics) set(port string, there bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if alias := hostif.Alias(port); there {
		v.there[alias] = hostif.Adapter{Alias: alias, Index: uint32(100 + len(v.there)), Compartment: 2, MTU: 1500}
	} else {
		delete(v.there, alias)
	}
}

func (v *vnics) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

func (v *vnics) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.listings
}

// winNode is a Windows node in memory: vNICs that come when a test says so, and
// an Open vSwitch that opens a port when its type is "internal" and its vNIC there.
type winNode struct {
	*podnettest.World
	vnics *vnics
	// opens, if set, may make opening fail although all is well.
	opens func(port podnet.Port) error
	cfg   windows.ReadinessConfig // what a test changes
}

func newWinNode() *winNode {
	n := &winNode{World: podnettest.NewWorld(), vnics: &vnics{there: make(map[string]hostif.Adapter)}}
	n.Bridge.Opens = func(p podnet.Port) error {
		switch {
		case p.Type == "":
			return fmt.Errorf("could not open network device %s (No such device)", p.Name)
		case !n.vnics.has(p.Name):
			return fmt.Errorf("could not add network device %s to ofproto (No such device)", p.Name)
		case n.opens != nil:
			return n.opens(p)
		}
		return nil
	}
	return n
}

// listed is what the OpenFlow session says of a port: never LIVE, as on Windows.
func (n *winNode) listed(name string) (async.PortState, bool) {
	number, err := n.Bridge.OFPort(context.Background(), podnet.PortKey{Name: name})
	return async.PortState{Number: number}, err == nil
}

func (n *winNode) readiness(t *testing.T) *async.Readiness {
	t.Helper()
	cfg := n.cfg
	cfg.Rows, cfg.Adapters, cfg.Listed = n.Bridge, n.vnics.list, n.listed
	cfg.Watches = []async.Watch{n.Bridge.Watch()}
	r, err := windows.NewReadiness(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs a Network on the node; starting again is a restart of the agent.
func (n *winNode) start(t *testing.T) (network *podnet.Network, stop func()) {
	t.Helper()
	cfg := n.World.Config()
	cfg.Readiness = n.readiness(t)
	return podnettest.Start(t, cfg)
}

// inWinNode runs fn on a node in a synctest bubble.
func inWinNode(t *testing.T, setUp func(*winNode), fn func(t *testing.T, n *winNode, network *podnet.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newWinNode()
		if setUp != nil {
			setUp(n)
		}
		network, stop := n.start(t)
		defer stop()
		fn(t, n, network)
		if broken := n.Broken(); len(broken) > 0 {
			t.Error(broken)
		}
	})
}

// add adds a Pod and returns its record, which must wait.
func add(t *testing.T, network *podnet.Network, id string) ifstore.Interface {
	t.Helper()
	iface, err := network.Add(t.Context(), podnettest.NewRequest(id))
	if err != nil {
		t.Fatal(err)
	}
	if iface.State != ifstore.StateWaiting {
		t.Fatalf("ADD of %s returned with state %v, want waiting", id, iface.State)
	}
	return iface
}

// record returns the interface as it is now.
func record(network *podnet.Network, iface ifstore.Interface) ifstore.Interface {
	for _, i := range network.Interfaces() {
		if i.Key == iface.Key {
			return i
		}
	}
	return ifstore.Interface{Waiting: "gone"}
}

func state(network *podnet.Network, iface ifstore.Interface) (ifstore.State, string) {
	got := record(network, iface)
	return got.State, got.Waiting
}

// readyWithin waits until the interface is ready and returns how long that took.
func readyWithin(t *testing.T, network *podnet.Network, iface ifstore.Interface, limit time.Duration) time.Duration {
	t.Helper()
	begun := time.Now()
	for time.Since(begun) <= limit {
		synctest.Wait()
		if s, _ := state(network, iface); s == ifstore.StateReady {
			return time.Since(begun)
		}
		time.Sleep(10 * time.Millisecond)
	}
	s, waiting := state(network, iface)
	t.Fatalf("%s is %s after %v, waiting for %q", iface.Name, s, limit, waiting)
	return 0
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// told returns the texts of the events of one interface, with its name replaced.
func told(n *winNode, iface ifstore.Interface) (texts []string) {
	for _, e := range n.Events() {
		if e.Key == iface.Key {
			texts = append(texts, string(e.Type)+": "+strings.ReplaceAll(e.Message, iface.Name, "PORT"))
		}
	}
	return texts
}

// typeChanges returns the types that were written to the port, in order.
func typeChanges(n *winNode, iface ifstore.Interface) (types []string) {
	for _, call := range n.Bridge.Calls() {
		if typ, ok := strings.CutPrefix(call, "SetType "+iface.Name+" "); ok {
			types = append(types, typ)
		}
	}
	return types
}

func del(t *testing.T, network *podnet.Network, iface ifstore.Interface) {
	t.Helper()
	if err := network.Delete(t.Context(), iface.Key); err != nil {
		t.Errorf("DEL of %s: %v", iface.Key, err)
	}
}

func nothingLeft(t *testing.T, n *winNode) {
	t.Helper()
	if left := n.Leftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

var errNotNow = errors.New("not now")
