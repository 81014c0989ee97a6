package podflows_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/podflows"
)

// dump lists the flows without what changes by itself.
func (l *lab) dump() []string {
	l.t.Helper()
	out := l.must(l.sw.Ofctl("dump-flows", "--no-stats", "unix:"+l.sw.MgmtSock(bridge))).(string)
	lines := strings.Split(regexp.MustCompile(`cookie=0x706f[0-9a-f]{3}`).ReplaceAllString(out, "cookie=0x706fRRR"), "\n")
	slices.Sort(lines)
	return lines
}

func (l *lab) audit() {
	l.t.Helper()
	missing, stale, err := l.flows.Audit(l.t.Context(), l.ifaces())
	if missing != 0 || stale != 0 || err != nil {
		l.t.Errorf("audit: %d missing, %d stale, %v", missing, stale, err)
	}
	for _, i := range l.ifaces() {
		if err := l.flows.CheckFlows(l.t.Context(), i); err != nil {
			l.t.Error(err)
		}
	}
}

// What OVS dumps is what was asked for, and installing again changes nothing (CO-12).
func TestTheSwitchHoldsWhatWasAsked(t *testing.T) {
	l := standardLab(t)
	l.audit()
	before := l.dump()
	want := len(l.flows.NodeFlows())
	for _, i := range l.ifaces() {
		mods, err := l.flows.Flows(i)
		l.ok(err)
		want += len(mods)
	}
	if len(before) != want {
		t.Errorf("%d flows on the switch, %d were asked for", len(before), want)
	}
	l.ok(errors.Join(l.flows.Install(t.Context(), l.ifaces())...))
	if after := l.dump(); !slices.Equal(before, after) {
		t.Errorf("installing again changed the flows")
	}
	l.ok(errors.Join(l.flows.Uninstall(t.Context(), l.ifaces())...))
	l.ok(errors.Join(l.flows.Uninstall(t.Context(), l.ifaces())...))
	if after := l.dump(); len(after) != len(l.flows.NodeFlows()) {
		t.Errorf("%d flows left, want the node's %d", len(after), len(l.flows.NodeFlows()))
	}
}

// After a restart of Open vSwitch the same flows stand and a connection that was
// under way goes on (RC-1, RC-7, RS-2).
func TestFlowsAndConnectionsOutliveARestart(t *testing.T) {
	l := standardLab(t)
	before := l.dump()
	stop := l.stream("a", "b", "10.10.0.11:7777")
	for _, end := range []func() error{l.sw.StopVswitchd, l.sw.KillVswitchd} {
		reconnects := l.client.Status().Reconnects
		l.ok(end())
		l.ok(l.sw.StartVswitchd())
		for l.client.Status().Reconnects == reconnects {
			l.ready() // an older session may still look ready
		}
		l.ready()
		if after := l.dump(); !slices.Equal(before, after) {
			t.Errorf("flows differ: %d before, %d after", len(before), len(after))
		}
		l.audit()
		stop(true)
	}
	stop(false)
}

// stream keeps a TCP connection busy. The result checks that numbered data
// still arrives (more), or ends it.
func (l *lab) stream(from, to, addr string) (check func(more bool)) {
	l.t.Helper()
	var server net.Listener
	var client, peer net.Conn
	l.in(l.pod(to).ns, func() (err error) { server, err = net.Listen("tcp", addr); return err })
	accepted := make(chan error, 1)
	go func() {
		var err error
		peer, err = server.Accept()
		accepted <- err
	}()
	l.in(l.pod(from).ns, func() (err error) { client, err = net.DialTimeout("tcp", addr, 10*time.Second); return err })
	l.ok(<-accepted)
	written := make(chan error, 1)
	go func() {
		block := make([]byte, blockSize)
		for n := uint64(0); ; n++ {
			binary.BigEndian.PutUint64(block, n)
			if _, err := client.Write(block); err != nil {
				written <- err
				return
			}
		}
	}()
	next := uint64(0)
	return func(more bool) {
		l.t.Helper()
		if !more {
			client.Close()
			peer.Close()
			server.Close()
			<-written
			return
		}
		// More than the buffers on the way hold, so that new packets must come through.
		l.ok(peer.SetReadDeadline(time.Now().Add(60 * time.Second)))
		block := make([]byte, blockSize)
		for end := next + (16<<20)/blockSize; next < end; next++ {
			if _, err := io.ReadFull(peer, block); err != nil {
				l.t.Fatalf("block %d: %v", next, err)
			}
			if got := binary.BigEndian.Uint64(block); got != next {
				l.t.Fatalf("block %d came as %d", next, got)
			}
		}
	}
}

const blockSize = 32 << 10

// Flows of earlier rounds go, strangers' flows stay (RC-23).
func TestReplayRemovesWhatEarlierRunsLeft(t *testing.T) {
	l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24"}})
	mgmt := "unix:" + l.sw.MgmtSock(bridge)
	for _, flow := range []string{
		"cookie=0x706f777123456789,table=0,priority=300,in_port=77,actions=drop", // ours, round 0x777
		"cookie=0x706f000123456789,table=0,priority=300,in_port=78,actions=drop", // ours, before any replay
		"cookie=0x1234,table=40,priority=100,ip,actions=goto_table:50",           // an embedder's policy
	} {
		l.must(l.sw.Ofctl("add-flow", mgmt, flow))
	}
	if _, stale, err := l.flows.Audit(t.Context(), l.ifaces()); stale != 2 || err != nil {
		t.Errorf("audit finds %d stale flows (%v), want 2", stale, err)
	}
	// A session that dies in the middle of the replay must not have deleted anything yet.
	broken := errors.New("broken")
	if err := l.flows.Replay(t.Context(), &failing{Sender: l.client, after: 1, err: broken}, l.ifaces()); !errors.Is(err, broken) {
		t.Errorf("replay over a broken session: %v", err)
	}
	if out := strings.Join(l.dump(), "\n"); !strings.Contains(out, "in_port=77") {
		t.Error("stale flows went before all was in")
	}
	l.ok(l.flows.Replay(t.Context(), l.client, l.ifaces()))
	out := strings.Join(l.dump(), "\n")
	if strings.Contains(out, "in_port=77") || strings.Contains(out, "in_port=78") {
		t.Error("stale flows stay")
	}
	if !strings.Contains(out, "cookie=0x1234") {
		t.Error("an embedder's flow is gone")
	}
	l.audit()
}

// failing is a Sender whose Apply fails after some calls.
type failing struct {
	ofclient.Sender
	after int
	err   error
}

func (f *failing) Apply(ctx context.Context, groups []ofclient.Group) []error {
	if f.after--; f.after < 0 {
		return slices.Repeat([]error{f.err}, len(groups))
	}
	return f.Sender.Apply(ctx, groups)
}

// A number that was freed is another Pod's soon (OF-11): a late DEL of the former
// owner must leave the new one alone.
func TestALateDeleteSparesTheNextOwner(t *testing.T) {
	l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24", "fd10::10/64"}}, podSpec{name: "b", addrs: []string{"10.10.0.11/24"}})
	next := l.pod("a")
	former := next.iface.Clone()
	former.ContainerID = "the former owner of the number, the MAC and the addresses"
	l.ok(l.flows.Install(t.Context(), []ifstore.Interface{former})[0])
	l.ok(l.flows.Install(t.Context(), []ifstore.Interface{next.iface})[0])
	l.ok(l.flows.Uninstall(t.Context(), []ifstore.Interface{former})[0])
	l.audit()
	l.expect("a", udpFrame(l.pod("b").mac, next.mac, "10.10.0.10", "10.10.0.11", 1, 2), "b")
}

// The gateway comes back with another number and MAC.
func TestTheGatewayMayChange(t *testing.T) {
	l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24"}})
	a := l.pod("a").mac
	l.vsctl("set", "interface", gwName, "ofport_request=500")
	l.gateway.iface.OFPort = l.ofportWhen(gwName, 500)
	l.raiseGateway(l.gateway)
	l.node.Gateway.OFPort = 500
	l.ok(l.flows.SetNode(t.Context(), l.node))
	l.settle()
	l.audit()
	l.expect("a", udpFrame(l.gateway.mac, a, "10.10.0.10", "10.10.0.1", 1, 2), "gateway")
	l.expect("gateway", udpFrame(a, l.gateway.mac, "10.10.0.1", "10.10.0.10", 2, 1), "a")

	l.ok(l.flows.SetNode(t.Context(), podflows.Node{}))
	l.settle()
	l.audit()
	l.expect("a", udpFrame(l.gateway.mac, a, "10.10.0.10", "10.10.0.1", 1, 3))
	l.expect("gateway", udpFrame(a, l.gateway.mac, "10.10.0.1", "10.10.0.10", 3, 1))
	l.expect("a", arpRequest(a, "10.10.0.10", "10.99.1.1").frame())
}

// Sockets of the kernel, with its own ARP and ND.
func TestRealSocketsTalk(t *testing.T) {
	l := standardLab(t)
	for _, test := range []struct{ from, to, addr string }{
		{"a", "b", "10.10.0.11"}, {"a", "b", "fd10::11"}, {"a", "gateway", "10.10.0.1"}, {"a", "gateway", "fd10::1"},
		{"gateway", "a", "10.10.0.10"}, {"gateway", "a", "fd10::10"}, {"a", "c", "10.10.1.12"}, {"c", "a", "10.10.0.10"},
		{"v1", "v2", "10.10.0.22"}, {"v2", "v1", "fd10::21"}, {"l1", "l2", "192.168.7.2"}, {"l2", "l1", "192.168.7.1"},
	} {
		t.Run(fmt.Sprintf("%s to %s at %s", test.from, test.to, test.addr), func(t *testing.T) {
			l := l.on(t)
			check := l.stream(test.from, test.to, net.JoinHostPort(test.addr, "7000"))
			check(false)
		})
	}
}

var _ ofclient.Sender = (*failing)(nil)

// An interface that the switch's own rules refuse keeps no other dark.
func TestOneBadInterfaceKeepsNoOtherDark(t *testing.T) {
	l := newLab(t, podSpec{name: "a", addrs: []string{"10.10.0.10/24"}}, podSpec{name: "b", addrs: []string{"10.10.0.11/24"}})
	twin := l.pod("b").iface.Clone()
	twin.ContainerID, twin.Created = "twin", time.Unix(1e9, 0)
	noNumber := l.pod("b").iface.Clone()
	noNumber.ContainerID, noNumber.OFPort = "no number", ofp.PortAny
	l.ok(l.flows.Replay(t.Context(), l.client, append(l.ifaces(), twin, noNumber)))
	l.audit()
}
