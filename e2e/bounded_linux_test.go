package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sync/errgroup"

	"github.com/antrea-lite/podnet/backend/linux"
	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/vswitch"
)

// The founding scenario has to bite: an agent that waits 5 s for the number and
// then gives up, which is what was done once, must fail it, and the same agent
// with nothing changed but its readiness must not.
func TestBoundedWaitLeavesPodsDark(t *testing.T) {
	for _, c := range []struct {
		name      string
		readiness func(*miniature) (podnet.PortReadiness, error)
		recovery  time.Duration
		dark      bool
	}{
		{"five seconds and no more", func(m *miniature) (podnet.PortReadiness, error) {
			return &boundedWait{ports: m.ovs, limit: 5 * time.Second, begun: make(chan podnet.PortKey, 16)}, nil
		}, 3 * time.Second, true},
		{"for as long as it takes", func(m *miniature) (podnet.PortReadiness, error) {
			return async.New(async.Config{Watches: []async.Watch{m.of.WatchPorts(), m.ovs.WatchOFPorts()}, NotReadyAfter: time.Second})
		}, patience, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := prepare(t, nil)
			m := startMiniature(t, n, c.readiness)
			err := m.outwaitFrozenSwitch(c.recovery)
			switch {
			case c.dark && !errors.Is(err, errDark):
				t.Errorf("the scenario does not bite: %v", err)
			case !c.dark && err != nil:
				t.Error(err)
			}
			t.Logf("the scenario says: %v", err)
		})
	}
}

var errDark = errors.New("the Pod has no network although Open vSwitch goes on")

// outwaitFrozenSwitch plays the founding scenario and tells everything that
// went wrong. recovery is the time for the Pod's network after Open vSwitch went on.
func (m *miniature) outwaitFrozenSwitch(recovery time.Duration) error {
	peer, late := m.newPod("peer", "10.10.0.2/22"), m.newPod("late", "10.10.0.3/22")
	if err := m.add(peer); err != nil {
		return err
	}
	if err := m.until(patience, func() error { return m.heard(peer, podnet.NetworkReady) }); err != nil {
		return err
	}
	if err := m.n.Switch.PauseVswitchd(); err != nil {
		return err
	}
	began := time.Now()
	addErr := m.add(late)
	m.n.untilAge(began, frozenTime)
	notReadyErr := m.heard(late, podnet.NetworkNotReady)
	if err := m.n.Switch.ResumeVswitchd(); err != nil {
		return err
	}
	darkErr := m.until(recovery, func() error {
		if _, err := lab.Ping(peer.NetNS, peer.Addr(false), late.Addr(false), 56, silence); err != nil {
			return fmt.Errorf("%w: %w", errDark, err)
		}
		return m.heard(late, podnet.NetworkReady)
	})
	return errors.Join(addErr, notReadyErr, darkErr)
}

// boundedWait is how it was done: ADD returns, the number is waited for in the
// background for a time that seemed long, and what comes later is not noticed.
type boundedWait struct {
	ports *vswitch.Client
	limit time.Duration
	begun chan podnet.PortKey
}

// Begin implements podnet.PortReadiness.
func (b *boundedWait) Begin(ctx context.Context, key podnet.PortKey) (uint32, bool, error) {
	select {
	case b.begun <- key:
		return 0, false, nil
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
}

// Cancel implements podnet.PortReadiness.
func (b *boundedWait) Cancel(podnet.PortKey) {}

// Run implements podnet.PortReadiness.
func (b *boundedWait) Run(ctx context.Context, sink podnet.PortSink) error {
	var waits sync.WaitGroup
	defer waits.Wait()
	for {
		select {
		case key := <-b.begun:
			waits.Go(func() { b.wait(ctx, sink, key) })
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *boundedWait) wait(ctx context.Context, sink podnet.PortSink, key podnet.PortKey) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	if _, err := b.ports.WaitOFPort(ctx, key); err != nil {
		return // it was logged, and that was all
	}
	for sink.Sync(ctx, []podnet.PortKey{key})[0] != nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // the ADD itself may still hold its lock
	}
}

// miniature is the least agent there can be: podnet and its parts, without CNI
// server, IPAM or gateway, in the test's own process. Only its readiness differs
// from one test to the next.
type miniature struct {
	t   *testing.T
	n   *node
	ovs *vswitch.Client
	of  *ofclient.Client
	net *podnet.Network

	mu     sync.Mutex
	events map[ifstore.Key][]podnet.EventType
}

// Event implements podnet.Events.
func (m *miniature) Event(_ context.Context, e podnet.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events[e.Key] = append(m.events[e.Key], e.Type)
}

// heard returns nil once the Pod was told that.
func (m *miniature) heard(p *lab.Pod, what podnet.EventType) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if told := m.events[ifstore.Key{ContainerID: p.ContainerID, IfName: p.IfName}]; !slices.Contains(told, what) {
		return fmt.Errorf("%s was not told %s, but %v", p.Name, what, told)
	}
	return nil
}

func startMiniature(t *testing.T, n *node, readiness func(*miniature) (podnet.PortReadiness, error)) *miniature {
	t.Helper()
	m := &miniature{t: t, n: n, events: map[ifstore.Key][]podnet.EventType{}}
	ctx, stop := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	flows, err := m.compose(ctx, group, readiness)
	t.Cleanup(func() {
		stop()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = m.start(ctx, group, flows)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *miniature) compose(ctx context.Context, group *errgroup.Group, readiness func(*miniature) (podnet.PortReadiness, error)) (flows *podflows.Installer, err error) {
	if m.ovs, err = vswitch.New(vswitch.Config{Endpoint: "unix:" + m.n.Switch.DBSock(), Bridge: lab.Bridge, Datapath: options.datapath}); err != nil {
		return nil, err
	}
	group.Go(func() error { return m.ovs.Run(ctx) })
	m.of, err = ofclient.New(ofclient.Config{Dial: ofclient.DialUnix(m.n.Switch.MgmtSock(lab.Bridge)), Replay: func(ctx context.Context, conn *ofclient.Conn) error {
		return m.net.Replay(ctx, func(ctx context.Context, ifaces []ifstore.Interface) error { return flows.Replay(ctx, conn, ifaces) })
	}})
	if err != nil {
		return nil, err
	}
	if flows, err = podflows.New(podflows.Config{Sender: m.of, Node: podflows.Node{PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/22")}}}); err != nil {
		return nil, err
	}
	linker, err := linux.NewLinker(linux.Config{})
	if err != nil {
		return nil, err
	}
	ready, err := readiness(m)
	if err != nil {
		return nil, err
	}
	m.net, err = podnet.New(podnet.Config{Linker: linker, Readiness: ready, Bridge: m.ovs, Flows: flows, Events: m, NotReadyAfter: time.Second})
	return flows, err
}

func (m *miniature) start(ctx context.Context, group *errgroup.Group, flows *podflows.Installer) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := m.ovs.EnsureBridge(limit); err != nil {
		return err
	}
	if err := m.net.Reconcile(limit); err != nil {
		return err
	}
	group.Go(func() error { return m.of.Run(ctx) })
	group.Go(func() error { return m.net.Run(ctx) })
	return m.until(patience, func() error {
		if s := m.of.Status(); !s.Ready {
			return fmt.Errorf("no OpenFlow session: %s", s.LastError)
		}
		return nil
	})
}

func (m *miniature) until(limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(m.t.Context(), limit)
	defer cancel()
	return lab.Until(ctx, check)
}

// newPod makes a namespace that leaves with the test.
func (m *miniature) newPod(name, address string) *lab.Pod {
	m.t.Helper()
	p, err := m.n.NewPod(name, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	prefix := netip.MustParsePrefix(address)
	p.Result = &current.Result{IPs: []*current.IPConfig{{Address: net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), 32)}}}}
	m.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := m.net.Delete(ctx, ifstore.Key{ContainerID: p.ContainerID, IfName: p.IfName})
		if err := errors.Join(err, nettest.DeleteNS(p.NetNS)); err != nil {
			m.t.Error(err)
		}
	})
	return p
}

func (m *miniature) add(p *lab.Pod) error {
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	ip := p.Result.IPs[0].Address
	addr, _ := netip.AddrFromSlice(ip.IP)
	bits, _ := ip.Mask.Size()
	_, err := m.net.Add(ctx, podnet.Request{
		Key: ifstore.Key{ContainerID: p.ContainerID, IfName: p.IfName}, Pod: ifstore.Pod{Namespace: "default", Name: p.Name},
		NetNS: p.NetNS, IPAM: "test", Addresses: []ifstore.Address{{Prefix: netip.PrefixFrom(addr, bits)}},
	})
	return err
}
