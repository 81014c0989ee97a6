package linux

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// lab is a real switch with both clients and a Readiness on them.
type lab struct {
	sw    *vswitchtest.Switch
	db    *vswitch.Client
	of    *ofclient.Client
	link  *Linker
	ready *Readiness
	syncs chan podnet.PortKey
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{sw: vswitchtest.Start(t), link: newLinker(t, Config{DisableTXChecksum: true}), syncs: make(chan podnet.PortKey, 1000)}
	if err := l.sw.AddBridge("br0", "netdev"); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.db, err = vswitch.New(vswitch.Config{Endpoint: "unix:" + l.sw.DBSock(), Bridge: "br0", Datapath: "netdev"}); err != nil {
		t.Fatal(err)
	}
	if l.of, err = ofclient.New(ofclient.Config{Dial: ofclient.DialUnix(l.sw.MgmtSock("br0"))}); err != nil {
		t.Fatal(err)
	}
	ofWatch, dbWatch := l.of.WatchPorts(), l.db.WatchOFPorts()
	l.ready = NewReadiness(ReadinessConfig{Ports: l.db, Watches: []async.Watch{ofWatch, dbWatch}, Describe: func(name string) string {
		p, ok := l.of.Port(name)
		if !ok {
			return ""
		}
		return fmt.Sprintf("number %d, state %v", p.Number, p.State)
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{l.db.Run, l.of.Run, func(ctx context.Context) error { return l.ready.Run(ctx, l) }} {
		group.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); group.Wait(); ofWatch.Close(); dbWatch.Close() })
	return l
}

func (l *lab) Sync(_ context.Context, keys []podnet.PortKey) []error {
	for _, k := range keys {
		l.syncs <- k
	}
	return make([]error, len(keys))
}

func (l *lab) Late(context.Context, podnet.PortKey, error) {}

// awaitSync waits until the sink was told of key. One with no Gen stands for
// any life, as in the watch's first word of a port, which may come before Begin.
func (l *lab) awaitSync(t *testing.T, key podnet.PortKey) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case k := <-l.syncs:
			if k.Name == key.Name && (k.Gen == key.Gen || k.Gen == "" || key.Gen == "") {
				return
			}
		case <-deadline:
			t.Fatalf("Sync of %v never came", key)
		}
	}
}

func (l *lab) addPort(t *testing.T, name string) podnet.PortKey {
	t.Helper()
	key, err := l.db.AddPort(context.Background(), podnet.Port{PortKey: podnet.PortKey{Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A linked veth gets its number, Open vSwitch agrees on it, and two containers
// talk: what one announces reaches the other, and TCP with checksums passes (NL-2, NL-12).
func TestPodsOnOpenVSwitch(t *testing.T) {
	l := newLab(t)
	if _, err := l.sw.Ofctl("add-flow", "unix:"+l.sw.MgmtSock("br0"), "actions=NORMAL"); err != nil {
		t.Fatal(err)
	}
	var pods []ifstore.Interface
	for i := range 2 {
		req := podnet.Request{Key: ifstore.Key{ContainerID: fmt.Sprint("c", i), IfName: "eth0"}, NetNS: newNS(t),
			Addresses: []ifstore.Address{addr(fmt.Sprintf("10.1.2.%d/24", 10+i), "10.1.2.1"), addr(fmt.Sprintf("fd00::%d/64", 10+i), "fd00::1")}}
		iface := link(t, l.link, req)
		key := l.addPort(t, iface.Name)
		n, ok, err := l.ready.Begin(context.Background(), key)
		if err != nil || !ok {
			t.Fatalf("Begin: %d, %v, %v", n, ok, err)
		}
		if out, err := l.sw.Vsctl("get", "interface", iface.Name, "ofport"); err != nil || out != fmt.Sprint(n) {
			t.Errorf("ofport is %s, %v; Begin said %d", out, err, n)
		}
		l.awaitSync(t, key)
		pods = append(pods, iface)
	}

	c := captureAt(t, pods[1].NetNS)
	if err := l.link.Announce(context.Background(), pods[0]); err != nil {
		t.Fatal(err)
	}
	// No marker here: Open vSwitch sends frames that hit its cache after those that miss it.
	left := map[string]int{
		describe(must(arpAnnouncement(pods[0].MAC, pods[0].IPs()[0]))): announcements,
		describe(must(unsolicitedNA(pods[0].MAC, pods[0].IPs()[1]))):   announcements,
	}
	for len(left) > 0 {
		s := describe(c.next(t).data)
		if left[s]--; left[s] <= 0 {
			delete(left, s)
		}
	}
	for _, target := range []string{"10.1.2.11", "fd00::11"} {
		if err := transfer(t, pods[0].NetNS, pods[1].NetNS, target); err != nil {
			t.Errorf("TCP to %s: %v", target, err)
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// transfer sends 4 MB over TCP from one namespace to another and compares the checksums.
func transfer(t *testing.T, from, to, target string) error {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	data := make([]byte, 4<<20)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	var listener net.Listener
	inside(t, to, func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(target, "0"))
		return err
	})
	defer listener.Close()
	sum := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		conn, err := listener.Accept()
		if err == nil {
			_, _ = io.Copy(h, conn)
			conn.Close()
		}
		sum <- h.Sum(nil)
	}()
	var conn net.Conn
	inside(t, from, func() (err error) {
		conn, err = net.DialTimeout("tcp", listener.Addr().String(), 10*time.Second)
		return err
	})
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write(data); err != nil {
		return err
	}
	conn.Close()
	want := sha256.Sum256(data)
	select {
	case got := <-sum:
		if !bytes.Equal(got, want[:]) {
			return errors.New("the data arrived changed or cut")
		}
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("stalled")
	}
}

// The veth vanishes between Link and AddPort: the error names the device
// problem in Open vSwitch's words (OF-8), and its return is reported.
func TestBeginWithoutDevice(t *testing.T) {
	l := newLab(t)
	req := request4("c1", newNS(t))
	iface := link(t, l.link, req)
	if err := l.link.Unlink(context.Background(), iface); err != nil {
		t.Fatal(err)
	}
	key := l.addPort(t, iface.Name)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, ok, err := l.ready.Begin(ctx, key)
	var port *podnet.PortError
	if ok || !errors.As(err, &port) || port.OFPort != -1 {
		t.Fatalf("Begin: %v, %v", ok, err)
	}
	wantText(t, err, iface.Name, "could not open network device", "ovs-vswitchd's log")
	l.awaitSync(t, podnet.PortKey{Name: iface.Name})
	link(t, l.link, req)
	for err != nil { // earlier events may still be under way
		l.awaitSync(t, podnet.PortKey{Name: iface.Name})
		_, _, err = l.ready.Begin(ctx, key)
	}
}

// ovs-vswitchd stands still while a port is added: the founding bug's shape.
func TestBeginWhileSwitchIsPaused(t *testing.T) {
	l := newLab(t)
	iface := link(t, l.link, request4("c1", newNS(t)))
	if _, err := l.db.Ports(context.Background()); err != nil { // connected
		t.Fatal(err)
	}
	if err := l.sw.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	key := l.addPort(t, iface.Name)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, ok, err := l.ready.Begin(ctx, key)
	if ok || !errors.Is(err, podnet.ErrNoNumber) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Begin: %v, %v", ok, err)
	}
	wantText(t, err, iface.Name, "told nothing", "vswitchd")
	if err := l.sw.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if n, ok, err := l.ready.Begin(ctx, key); !ok || err != nil || n == 0 {
		t.Errorf("Begin after the pause: %d, %v, %v", n, ok, err)
	}
}

// Another port takes the number: both ports are reported (fact 8).
func TestStolenNumberIsReported(t *testing.T) {
	l := newLab(t)
	var keys []podnet.PortKey
	for i := range 2 {
		iface := link(t, l.link, request4(fmt.Sprint("c", i), newNS(t)))
		keys = append(keys, l.addPort(t, iface.Name))
		if i == 1 {
			break
		}
		if _, _, err := l.ready.Begin(context.Background(), keys[i]); err != nil {
			t.Fatal(err)
		}
		l.awaitSync(t, keys[i])
	}
	n, _, err := l.ready.Begin(context.Background(), keys[1])
	if err != nil {
		t.Fatal(err)
	}
	l.awaitSync(t, keys[1])
	if _, err := l.sw.Vsctl("set", "interface", keys[0].Name, fmt.Sprint("ofport_request=", n)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		l.awaitSync(t, keys[0])
		if now, err := l.db.OFPort(context.Background(), keys[0]); err == nil && now == n {
			return
		}
	}
	t.Errorf("port %s never got number %d", keys[0].Name, n)
}
