package oftest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// peer is one raw connection.
type peer struct {
	t  *testing.T
	nc net.Conn
	br *bufio.Reader
}

func connect(t *testing.T, dial func(context.Context) (net.Conn, error)) *peer {
	t.Helper()
	nc, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	p := &peer{t, nc, bufio.NewReader(nc)}
	p.send(0, &ofp.Hello{Versions: []uint8{ofp.Version}})
	return p
}

func (p *peer) send(xid uint32, m ofp.Message) {
	p.t.Helper()
	b, err := ofp.Append(nil, xid, m)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// converse sends the messages, with xids from 1, and returns the answers in words.
func (p *peer) converse(msgs []ofp.Message) []string {
	p.t.Helper()
	const end = 1000
	go func() {
		var b []byte
		for i, m := range append(msgs, &ofp.BarrierRequest{}) {
			xid := uint32(i + 1)
			if i == len(msgs) {
				xid = end
			}
			b, _ = ofp.Append(b, xid, m)
		}
		p.nc.Write(b)
	}()
	p.nc.SetReadDeadline(time.Now().Add(30 * time.Second))
	var words []string
	for {
		head, err := p.br.Peek(ofp.HeaderLen)
		if err != nil {
			p.t.Fatal(err)
		}
		h, err := ofp.ParseHeader(head)
		if err != nil {
			p.t.Fatal(err)
		}
		frame := make([]byte, h.Length)
		if _, err := io.ReadFull(p.br, frame); err != nil {
			p.t.Fatal(err)
		}
		xid, m, err := ofp.Decode(frame)
		if err != nil {
			p.t.Fatal(err)
		}
		switch m := m.(type) {
		case *ofp.Hello:
		case *ofp.Error:
			words = append(words, fmt.Sprintf("%d: %s", xid, m.String()))
		case *ofp.BundleControl:
			words = append(words, fmt.Sprintf("%d: %s of %d", xid, m.Kind, m.BundleID))
		case *ofp.PortStatus:
			words = append(words, fmt.Sprintf("%d: %s %s", xid, m.Reason, m.Desc.Name))
		default:
			if xid == end {
				return words
			}
			words = append(words, fmt.Sprintf("%d: %s", xid, m.Type()))
		}
	}
}

func add(bundle uint32, flags uint16, inner ofp.Message) *ofp.BundleAdd {
	return &ofp.BundleAdd{BundleID: bundle, Flags: flags, Inner: inner}
}

func flow(n uint16, actions ...ofp.Action) *ofp.FlowMod {
	return &ofp.FlowMod{Command: ofp.FlowAdd, Priority: n, Instructions: ofp.Apply(actions...)}
}

// The fake must answer like the real switch, or tests that pass against it prove nothing.
func TestFakeAnswersLikeOpenVSwitch(t *testing.T) {
	s := vswitchtest.Start(t)
	if err := s.AddBridge("br0", "netdev"); err != nil {
		t.Fatal(err)
	}
	ovs := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.MgmtSock("br0"))
	}
	const flags = ofp.BundleAtomic | ofp.BundleOrdered
	control := func(id uint32, kind ofp.BundleKind) ofp.Message {
		return &ofp.BundleControl{BundleID: id, Kind: kind, Flags: flags}
	}
	open, commit, discard := ofp.BundleOpenRequest, ofp.BundleCommitRequest, ofp.BundleDiscardRequest
	badPort, badGroup := flow(77, ofp.Output{Port: 0xffffff77}), flow(78, ofp.Group{ID: 4711})
	for name, test := range map[string]struct {
		msgs  []ofp.Message
		flows int // that stand afterwards
	}{
		"commit":                     {[]ofp.Message{control(1, open), add(1, flags, flow(1)), add(1, flags, flow(2)), &ofp.BarrierRequest{}, control(1, commit)}, 2},
		"discard":                    {[]ofp.Message{control(1, open), add(1, flags, flow(1)), control(1, discard)}, 0},
		"empty":                      {[]ofp.Message{control(1, open), control(1, commit)}, 0},
		"a bad add does not spoil":   {[]ofp.Message{control(1, open), add(1, flags, flow(1)), add(1, flags, badPort), add(1, flags, flow(2)), control(1, commit)}, 2},
		"a bad commit spoils all":    {[]ofp.Message{control(1, open), add(1, flags, flow(1)), add(1, flags, badGroup), add(1, flags, flow(2)), control(1, commit)}, 0},
		"and it is over":             {[]ofp.Message{control(1, open), add(1, flags, badGroup), control(1, commit), control(1, commit)}, 0},
		"open twice":                 {[]ofp.Message{control(1, open), control(1, open), control(1, commit)}, 0},
		"commit of nothing":          {[]ofp.Message{control(1, commit)}, 0},
		"discard of nothing":         {[]ofp.Message{control(1, discard)}, 0},
		"add opens in silence":       {[]ofp.Message{add(1, flags, flow(1)), control(1, commit)}, 1},
		"other flags in an add":      {[]ofp.Message{control(1, open), add(1, ofp.BundleAtomic, flow(1)), control(1, commit)}, 0},
		"other flags in the commit":  {[]ofp.Message{&ofp.BundleControl{BundleID: 1, Kind: open, Flags: ofp.BundleAtomic}, add(1, ofp.BundleAtomic, flow(1)), control(1, commit)}, 0},
		"close, then add":            {[]ofp.Message{control(1, open), add(1, flags, flow(1)), control(1, ofp.BundleCloseRequest), add(1, flags, flow(2)), control(1, commit)}, 0},
		"close, then commit":         {[]ofp.Message{control(1, open), add(1, flags, flow(1)), control(1, ofp.BundleCloseRequest), control(1, commit)}, 1},
		"something else in a bundle": {[]ofp.Message{control(1, open), add(1, flags, &ofp.BarrierRequest{}), control(1, commit)}, 0},
		"two at once":                {[]ofp.Message{control(1, open), control(2, open), add(1, flags, flow(1)), add(2, flags, flow(2)), control(2, commit), control(1, discard)}, 1},
		"delete and add":             {[]ofp.Message{flow(9), control(1, open), add(1, flags, &ofp.FlowMod{Command: ofp.FlowDelete}), add(1, flags, flow(1)), control(1, commit)}, 1},
		"outside a bundle":           {[]ofp.Message{flow(1), badGroup, flow(2)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Ofctl("del-flows", "unix:"+s.MgmtSock("br0")); err != nil {
				t.Fatal(err)
			}
			sw := oftest.New()
			defer sw.Close()
			sw.SetFaults(func(f *oftest.Faults) {
				f.FailAdd = func(m ofp.FlowMod) *ofp.Error {
					if m.Priority == badPort.Priority {
						return &ofp.Error{ErrType: ofp.ErrTypeBadAction, Code: 4}
					}
					return nil
				}
				f.FailCommit = func(m ofp.FlowMod) *ofp.Error {
					if m.Priority == badGroup.Priority {
						return &ofp.Error{ErrType: ofp.ErrTypeBadAction, Code: 9}
					}
					return nil
				}
			})
			want := connect(t, ovs).converse(test.msgs)
			got := connect(t, sw.Dial).converse(test.msgs)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers (-OVS +fake):\n%s", diff)
			}
			real, err := s.Ofctl("--no-stats", "dump-flows", "unix:"+s.MgmtSock("br0"))
			if err != nil {
				t.Fatal(err)
			}
			n := strings.Count(real, "actions=")
			if n != test.flows || len(sw.Flows()) != test.flows {
				t.Errorf("%d flows on OVS, %d on the fake, want %d:\n%s", n, len(sw.Flows()), test.flows, real)
			}
		})
	}
}

func TestServeOnASocket(t *testing.T) {
	sw := oftest.New()
	path := filepath.Join(t.TempDir(), "of.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	sw.Serve(l)
	p := connect(t, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	})
	sw.AddPort(ofp.PortDesc{Number: 1, Name: "before"})
	p.converse([]ofp.Message{ofp.PortStatusOnly()})
	sw.AddPort(ofp.PortDesc{Number: 2, Name: "a"})
	sw.DeletePort(2)
	if diff := cmp.Diff([]string{"0: ADD a", "0: DEL a", "1: MULTIPART_REPLY"}, p.converse([]ofp.Message{&ofp.PortDescRequest{}})); diff != "" {
		t.Error(diff)
	}
	sw.Close()
	if _, err := sw.Dial(t.Context()); err == nil {
		t.Error("a closed switch accepts connections")
	}
}
