package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// device makes a veth pair as a stranger would: name on the host, the peer
// beside it. It goes with the test.
func device(t *testing.T, name string) {
	t.Helper()
	la := netlink.NewLinkAttrs()
	la.Name = name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: name + "p"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeDevice(t, name) })
	peer, err := netlink.LinkByName(name + "p")
	if err == nil {
		err = netlink.LinkSetUp(peer)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func removeDevice(t *testing.T, name string) {
	t.Helper()
	if l, err := netlink.LinkByName(name); err == nil {
		if err := netlink.LinkDel(l); err != nil {
			t.Error(err)
		}
	}
}

func attrs(t *testing.T, name string) *netlink.LinkAttrs {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Attrs()
}

func deviceRequest(t *testing.T, name string) podnet.Request {
	t.Helper()
	req := request4("vm-"+name, newNS(t))
	req.HostDevice, req.MTU = name, 1400
	return req
}

// A device of others is set up and plugged in, and outlives its interface.
func TestHostDeviceIsTheirs(t *testing.T) {
	device(t, "dev0")
	l := newLinker(t, Config{QuietHost: true})
	req := deviceRequest(t, "dev0")
	got, err := l.Link(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "dev0" || got.MTU != 1400 || got.MAC.IsZero() {
		t.Errorf("link %+v", got)
	}
	if a := attrs(t, "dev0"); a.MTU != 1400 || a.Flags&1 == 0 {
		t.Errorf("device has MTU %d, flags %v", a.MTU, a.Flags)
	}
	iface := record(req, got)
	if err := l.Check(t.Context(), iface); err != nil {
		t.Errorf("Check: %v", err)
	}
	if alive, err := l.Alive(t.Context(), iface); err != nil || !alive {
		t.Errorf("Alive: %v %v", alive, err)
	}
	if err := l.Announce(t.Context(), iface); err != nil {
		t.Errorf("Announce: %v", err)
	}
	dev, err := netlink.LinkByName("dev0")
	if err == nil {
		err = errors.Join(netlink.LinkSetMTU(dev, 1300), netlink.LinkSetDown(dev), os.WriteFile("/proc/sys/net/ipv4/conf/dev0/arp_ignore", []byte("0"), 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	err = l.Check(t.Context(), iface)
	for _, want := range []string{"MTU is 1300", "is down", "arp_ignore is 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v, want %q", err, want)
		}
	}
	for range 2 {
		if err := l.Unlink(t.Context(), iface); err != nil {
			t.Errorf("Unlink: %v", err)
		}
	}
	if err := l.UnlinkOrphan(t.Context(), iface.Key); err != nil {
		t.Errorf("UnlinkOrphan: %v", err)
	}
	attrs(t, "dev0") // still there
	removeDevice(t, "dev0")
	if err := l.Check(t.Context(), iface); err == nil || !strings.Contains(err.Error(), "dev0") {
		t.Errorf("Check without the device: %v", err)
	}
	if alive, err := l.Alive(t.Context(), iface); err != nil || !alive {
		t.Errorf("a device that went for a while: alive %v, %v", alive, err)
	}
}

func TestHostDeviceThatComesLater(t *testing.T) {
	req := deviceRequest(t, "late0")
	_, err := newLinker(t, Config{}).Link(t.Context(), req)
	if !errors.Is(err, podnet.ErrNoDevice) || !strings.Contains(err.Error(), "late0") || !strings.Contains(err.Error(), "portReadiness: async") {
		t.Errorf("waiting in ADD: %v, want an error that names the remedy", err)
	}
	if got, err := newLinker(t, Config{LateDevices: true}).Link(t.Context(), req); err != nil || got.Name != "late0" {
		t.Errorf("with late devices: %+v %v", got, err)
	}
}

// What the host itself needs is not taken, nor what is a part of something else.
func TestHostDeviceRefuses(t *testing.T) {
	l := newLinker(t, Config{LateDevices: true})
	device(t, "own0")
	own, err := netlink.LinkByName("own0")
	if err == nil {
		err = netlink.AddrAdd(own, &netlink.Addr{IPNet: netlink.NewIPNet([]byte{192, 0, 2, 1})})
	}
	if err != nil {
		t.Fatal(err)
	}
	device(t, "part0")
	la := netlink.NewLinkAttrs()
	la.Name = "bridge0"
	bridge := &netlink.Bridge{LinkAttrs: la}
	part, err := netlink.LinkByName("part0")
	if err == nil {
		err = errors.Join(netlink.LinkAdd(bridge), netlink.LinkSetMaster(part, bridge))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeDevice(t, "bridge0") })
	for name, want := range map[string]string{
		"lo": "loopback", "own0": "192.0.2.1", "part0": "bridge bridge0", "name-too-long-for-it": "15 at most", "a/b": "refuses",
	} {
		_, err := l.Link(t.Context(), deviceRequest(t, name))
		if !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	req := deviceRequest(t, "any0")
	req.NetNS = "/proc/self/ns/net"
	if _, err := l.Link(t.Context(), req); !errors.Is(err, podnet.ErrBadRequest) {
		t.Errorf("the host's own namespace: %v", err)
	}
}

func TestListDevices(t *testing.T) {
	device(t, "listed0")
	names, err := ListDevices(t.Context())
	if err != nil || !slices.Contains(names, "listed0") || !slices.Contains(names, "lo") {
		t.Errorf("%v %v", names, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ListDevices(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}

// next reads the watch until it told name.
func tells(t *testing.T, w *DeviceWatch, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, fmt.Errorf("nothing was told of %s", name))
	defer cancel()
	for {
		names, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(names, name) {
			return
		}
	}
}

func TestDeviceWatch(t *testing.T) {
	w := &DeviceWatch{}
	defer w.close()
	tells(t, w, "lo") // first all that there is
	device(t, "seen0")
	tells(t, w, "seen0")
	dev, err := netlink.LinkByName("seen0")
	if err == nil {
		err = netlink.LinkSetMTU(dev, 1400) // no news about who is there
	}
	if err == nil {
		err = netlink.LinkSetName(dev, "seen1")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer removeDevice(t, "seen1")
	names, err := w.Next(t.Context())
	for err == nil && !slices.Contains(names, "seen1") {
		if slices.Contains(names, "seen0") {
			t.Errorf("told of seen0 before it was renamed: %v", names)
		}
		names, err = w.Next(t.Context())
	}
	if err != nil || !slices.Contains(names, "seen0") {
		t.Errorf("a rename told %v, %v; want both names", names, err)
	}
	if err := errors.Join(netlink.LinkSetUp(dev), netlink.LinkSetDown(dev)); err != nil {
		t.Fatal(err)
	}
	tells(t, w, "seen1")                                            // it went down
	if err := w.file.SetReadDeadline(time.Unix(1, 0)); err != nil { // left by a context that ended late
		t.Fatal(err)
	}
	removeDevice(t, "seen1")
	tells(t, w, "seen1")
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	for err = nil; err == nil; {
		_, err = w.Next(ctx)
	}
	if !errors.Is(err, context.Canceled) || w.file != nil {
		t.Errorf("ended with %v, socket open: %v", err, w.file != nil)
	}
	tells(t, w, "lo") // and begins anew
}

// When the kernel had to drop messages nothing is lost: what came and what went is found by comparing.
func TestDeviceWatchOverflow(t *testing.T) {
	w := &DeviceWatch{}
	defer w.close()
	device(t, "goes0")
	tells(t, w, "goes0")
	var err error
	if ctl := w.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 2048)
	}); ctl != nil || err != nil {
		t.Fatal(ctl, err)
	}
	removeDevice(t, "goes0")
	for i := range 40 {
		device(t, fmt.Sprint("over", i))
	}
	left := map[string]bool{"goes0": true}
	for i := range 40 {
		left[fmt.Sprint("over", i)] = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for len(left) > 0 {
		names, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("%v; not told of %v", err, left)
		}
		for _, name := range names {
			delete(left, name)
		}
	}
}

// asyncLab is a lab with an asynchronous readiness; syncs holds what its sink was told.
type asyncLab struct {
	*lab
	store *ifstore.Store
	notes *notes
	ready *async.Readiness
}

// notes is a sink that also keeps the causes.
type notes struct {
	*lab
	mu     sync.Mutex
	causes map[string]string
}

func (n *notes) Note(key podnet.PortKey, cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.causes[key.Name] = cause.Error()
}

func (n *notes) cause(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.causes[name]
}

func newAsyncLab(t *testing.T, linker *Linker) *asyncLab {
	t.Helper()
	l := &asyncLab{lab: newLab(t), store: ifstore.New()}
	l.notes = &notes{lab: l.lab, causes: map[string]string{}}
	watch := l.of.WatchPorts()
	dbWatch := l.db.WatchOFPorts()
	var err error
	l.ready, err = NewAsyncReadiness(AsyncReadinessConfig{
		Linker: linker, Interface: l.store.ByName, Nudge: l.db.Nudge, OFPort: l.db.OFPort, Watches: []async.Watch{watch, dbWatch},
		Ports: func(name string) (async.PortState, bool) {
			p, ok := l.of.Port(name)
			return async.PortState{Number: p.Number, Live: p.State&ofp.PortStateLive != 0}, ok
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.ready.Run(ctx, l.notes) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		watch.Close()
		dbWatch.Close()
	})
	return l
}

// Two halves: the device appears, then it is live. Both end the wait at once,
// without a retry's pause; the device is set up in between.
func TestAsyncReadinessWaitsForADevice(t *testing.T) {
	linker := newLinker(t, Config{LateDevices: true})
	l := newAsyncLab(t, linker)
	req := deviceRequest(t, "twohalves")
	got, err := linker.Link(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	key := l.addPort(t, "twohalves")
	iface := record(req, got)
	iface.Gen, iface.State = key.Gen, ifstore.StateWaiting
	if err := l.store.Insert(iface); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := l.ready.Begin(t.Context(), key); ok || err != nil {
		t.Fatalf("Begin: %v %v", ok, err)
	}
	eventually(t, "the missing device is the cause", func() bool { return strings.Contains(l.notes.cause("twohalves"), "has not appeared yet") })
	begun := time.Now()
	device(t, "twohalves")
	eventually(t, "the promise is kept", func() bool { return l.ready.Waiting() == 0 })
	took := time.Since(begun)
	t.Logf("from the device's appearance to its flows: %v", took)
	if took > 3*time.Second {
		t.Errorf("took %v; an event should end the wait", took)
	}
	if a := attrs(t, "twohalves"); a.MTU != 1400 || a.Flags&1 == 0 {
		t.Errorf("device has MTU %d, flags %v", a.MTU, a.Flags)
	}
	// Somebody takes it down.
	dev, err := netlink.LinkByName("twohalves")
	if err == nil {
		err = netlink.LinkSetDown(dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the device is up again", func() bool { return attrs(t, "twohalves").Flags&1 != 0 })
	// It goes and comes back: the userspace datapath keeps the number, so nothing waits, and it is set up all the same.
	removeDevice(t, "twohalves")
	device(t, "twohalves")
	eventually(t, "the new device is set up", func() bool {
		a, err := netlink.LinkByName("twohalves")
		return err == nil && a.Attrs().MTU == 1400 && a.Attrs().Flags&1 != 0
	})
}

// OF-4: a port in error although its device is there is nudged; Open vSwitch's
// words and the nudges are the cause. When the obstacle goes it gets its number.
func TestAsyncReadinessNudges(t *testing.T) {
	l := newAsyncLab(t, newLinker(t, Config{}))
	device(t, "inerror0") // a device of that name is in the way of a port of type internal
	key, err := l.db.AddPort(t.Context(), podnet.Port{PortKey: podnet.PortKey{Name: "inerror0"}, Type: "internal"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.ready.Begin(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the nudges are told of", func() bool {
		cause := l.notes.cause("inerror0")
		return strings.Contains(cause, "nudged") && strings.Contains(cause, "ofport -1")
	})
	if out, err := l.sw.Vsctl("get", "port", "inerror0", "external_ids:podnet-nudged"); err != nil || out == "" {
		t.Errorf("nudged: %q %v", out, err)
	}
	removeDevice(t, "inerror0")
	eventually(t, "Open vSwitch makes its own device", func() bool {
		_, err := l.db.OFPort(t.Context(), key)
		return err == nil
	})
}

// eventually waits for what the kernel or another goroutine does.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
