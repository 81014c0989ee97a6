package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// clientSide is oftest's switch, reached by the real ofclient and podflows.
type clientSide struct {
	n  *node
	sw *oftest.Switch
	// build makes the flows that should stand; it never sends any.
	build *podflows.Installer

	mu    sync.Mutex
	ports map[uint32]bool // numbers that the switch has
}

func newClientSide(n *node) *clientSide {
	s := &clientSide{n: n, sw: oftest.New(), ports: make(map[uint32]bool)}
	s.build = s.installer(unsent{})
	s.sw.SetFaults(func(f *oftest.Faults) {
		f.ReplyDelay = []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond}[n.sched.Slow]
		f.PortsPerPart = 2
		f.OnMessage = s.message
	})
	return s
}

func (s *clientSide) installer(sender ofclient.Sender) *podflows.Installer {
	i, err := podflows.New(podflows.Config{Sender: sender, Node: podflows.Node{PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/16")}}})
	if err != nil {
		panic(err) // a constant
	}
	return i
}

// unsent is the Sender of an installer that only builds.
type unsent struct{ ofclient.Sender }

// message plays the faults of commits, which no part above can play: the
// connection breaks and the client does not know what became of the bundle.
func (s *clientSide) message(_ int, _ uint32, m ofp.Message) oftest.Verdict {
	if b, ok := m.(*ofp.BundleControl); !ok || b.Kind != ofp.BundleCommitRequest {
		return oftest.Pass
	}
	for _, v := range []struct {
		done    bool
		verdict oftest.Verdict
	}{{false, oftest.Close}, {true, oftest.CloseAfter}} {
		if s.n.fail(context.Background(), podnettest.FaultCall{Op: "Commit", Done: v.done}) != nil {
			return v.verdict
		}
	}
	return oftest.Pass
}

func (s *clientSide) hear(name string, port async.PortState, gone, lost bool) {
	if lost {
		s.sw.SetFaults(func(f *oftest.Faults) { f.DropPortStatus++ })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone {
		delete(s.ports, port.Number)
		s.sw.DeletePort(port.Number)
		return
	}
	d := ofp.PortDesc{Number: port.Number, Name: name, State: ofp.PortStateLinkDown}
	if port.Live {
		d.State = ofp.PortStateLive
	}
	s.ports[port.Number] = true
	s.sw.AddPort(d)
}

func (s *clientSide) freeze(frozen bool) {
	if frozen {
		s.sw.Pause()
	} else {
		s.sw.Resume()
	}
}

// restart forgets the ports as well: nobody is told, no session is left.
func (s *clientSide) restart() {
	s.sw.Restart()
	s.mu.Lock()
	defer s.mu.Unlock()
	for number := range s.ports {
		s.sw.DeletePort(number)
	}
	clear(s.ports)
}

func (s *clientSide) drop()  { s.sw.DropSessions() }
func (s *clientSide) close() { s.sw.Close() }

func (s *clientSide) reach(reachable bool) {
	s.sw.SetFaults(func(f *oftest.Faults) {
		if f.RefuseDial = nil; !reachable {
			f.RefuseDial = errors.New("connection refused")
		}
	})
	if !reachable {
		s.sw.DropSessions()
	}
}

func (s *clientSide) numbers(key ifstore.Key) []uint32 {
	cookie, mask := podflows.CookieOf(key)
	var numbers []uint32
	for _, f := range s.sw.Flows() {
		if f.Cookie&mask != cookie {
			continue
		}
		for _, field := range f.Match {
			if field.ID() == ofp.InPort(0).ID() {
				if number := binary.BigEndian.Uint32(field.Value()); !slices.Contains(numbers, number) {
					numbers = append(numbers, number)
				}
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

func (s *clientSide) wrong(want map[ifstore.Key]uint32, records []ifstore.Interface) string {
	due := make(map[ofp.FlowKey]string)
	for _, m := range s.build.NodeFlows() {
		due[m.Key()] = "the node"
	}
	for _, record := range records {
		number, ok := want[record.Key]
		if !ok {
			continue
		}
		record.OFPort = number
		mods, err := s.build.Flows(record)
		if err != nil {
			return fmt.Sprintf("flows of %s: %v", record.Key, err)
		}
		for _, m := range mods {
			due[m.Key()] = record.Key.String()
		}
	}
	for _, f := range s.sw.Flows() {
		if _, ok := due[f.Key()]; !ok {
			return fmt.Sprintf("a flow too many: %v, cookie %#x", f, f.Cookie)
		}
		delete(due, f.Key())
	}
	for _, owner := range due {
		return fmt.Sprintf("%d flows are missing, one of %s", len(due), owner)
	}
	return ""
}

// killable ends with its agent: nothing is written after it was killed.
type killable struct {
	net.Conn
	inc *incarnation
}

func (k killable) Write(b []byte) (int, error) {
	if k.inc.killed.Load() {
		return 0, errKilled
	}
	return k.Conn.Write(b)
}

func (s *clientSide) connect(inc *incarnation) agentSide {
	var network *podnet.Network
	var flows *podflows.Installer
	client, err := ofclient.New(ofclient.Config{
		Dial: func(ctx context.Context) (net.Conn, error) {
			nc, err := s.sw.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return killable{nc, inc}, nil
		},
		ListPeriod: listPeriod,
		Replay: func(ctx context.Context, conn *ofclient.Conn) error {
			return checkedFlows{n: s.n}.replay(ctx, network, func(ctx context.Context, ifaces []ifstore.Interface) error {
				return flows.Replay(ctx, conn, ifaces)
			})
		},
	})
	if err != nil {
		panic(err) // a constant configuration
	}
	flows = s.installer(client)
	table := clientPorts{client}
	return agentSide{flows: flows, ports: table, port: table.port, watch: client.WatchPorts(),
		run: func(ctx context.Context, net *podnet.Network) {
			network = net
			if err := client.Run(ctx); err != nil {
				s.n.breach("ofclient.Client.Run: %v", err)
			}
		}}
}

// clientPorts is what an agent puts between ofclient and podnet.
type clientPorts struct{ client *ofclient.Client }

func (p clientPorts) port(name string) (async.PortState, bool) {
	d, ok := p.client.Port(name)
	return async.PortState{Number: d.Number, Live: d.State&ofp.PortStateLive != 0}, ok
}

func (p clientPorts) PortState(name string) (uint32, bool) {
	d, ok := p.client.Port(name)
	return d.Number, ok
}
