package interop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

const bridge = "br0"

// startBridge starts a switch with one bridge on the userspace datapath.
func startBridge(t *testing.T) *vswitchtest.Switch {
	t.Helper()
	s := vswitchtest.Start(t)
	if err := s.AddBridge(bridge, "netdev"); err != nil {
		t.Fatal(err)
	}
	return s
}

// session is a plain OpenFlow connection that keeps every frame it saw.
type session struct {
	t      *testing.T
	conn   net.Conn
	xid    uint32
	frames [][]byte // from the switch, in order
}

func dial(t *testing.T, path string) *session {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &session{t: t, conn: conn}
	s.send(&ofp.Hello{})
	if h, ok := s.recv().(*ofp.Hello); !ok || !h.Supports(ofp.Version) {
		t.Fatalf("no hello of OpenFlow 1.5: %v", h)
	}
	return s
}

func (s *session) send(m ofp.Message) uint32 {
	s.t.Helper()
	s.xid++
	if _, err := s.conn.Write(encode(s.t, s.xid, m)); err != nil {
		s.t.Fatal(err)
	}
	return s.xid
}

func (s *session) recv() ofp.Message {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	frame, err := readFrame(s.conn)
	if err != nil {
		s.t.Fatal(err)
	}
	s.frames = append(s.frames, frame)
	_, m, err := ofp.Decode(frame)
	if err != nil {
		s.t.Fatalf("%v\n%x", err, frame)
	}
	return m
}

// until receives until want accepts a message, and returns all that came.
func (s *session) until(want func(ofp.Message) bool) []ofp.Message {
	s.t.Helper()
	var got []ofp.Message
	for {
		m := s.recv()
		got = append(got, m)
		if want(m) {
			return got
		}
	}
}

// barrier returns what came before the barrier's reply.
func (s *session) barrier() []ofp.Message {
	s.t.Helper()
	s.send(&ofp.BarrierRequest{})
	got := s.until(func(m ofp.Message) bool { _, ok := m.(*ofp.BarrierReply); return ok })
	return got[:len(got)-1]
}

// flows dumps every flow.
func (s *session) flows() []ofp.FlowStats {
	s.t.Helper()
	s.send(&ofp.FlowStatsRequest{Table: ofp.TableAll})
	var flows []ofp.FlowStats
	s.until(func(m ofp.Message) bool {
		r, ok := m.(*ofp.FlowStatsReply)
		if !ok {
			s.t.Fatalf("%s while waiting for flows: %v", m.Type(), m)
		}
		flows = append(flows, r.Flows...)
		return !r.More
	})
	return flows
}

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, ofp.HeaderLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	h, err := ofp.ParseHeader(head)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, h.Length)
	copy(frame, head)
	_, err = io.ReadFull(r, frame[ofp.HeaderLen:])
	return frame, err
}

// relay sits between ovs-ofctl and the bridge and keeps what passes.
type relay struct {
	path string

	mu        sync.Mutex
	up, down  [][]byte // to the switch, from the switch
	listener  net.Listener
	running   sync.WaitGroup
	firstFail error
}

func startRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{path: filepath.Join(t.TempDir(), "relay")}
	var err error
	if r.listener, err = net.Listen("unix", r.path); err != nil {
		t.Fatal(err)
	}
	r.running.Go(func() {
		for {
			client, err := r.listener.Accept()
			if err != nil {
				return
			}
			sw, err := net.Dial("unix", to)
			if err != nil {
				r.fail(err)
				client.Close()
				continue
			}
			r.running.Go(func() { r.copy(sw, client, &r.up) })
			r.running.Go(func() { r.copy(client, sw, &r.down) })
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *relay) stop() {
	r.listener.Close()
	r.running.Wait()
}

func (r *relay) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.firstFail == nil {
		r.firstFail = err
	}
}

func (r *relay) copy(dst, src net.Conn, into *[][]byte) {
	defer dst.Close()
	defer src.Close()
	for {
		frame, err := readFrame(src)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrUnexpectedEOF) {
				r.fail(fmt.Errorf("relay: %w", err))
			}
			return
		}
		r.mu.Lock()
		*into = append(*into, frame)
		r.mu.Unlock()
		if _, err := dst.Write(frame); err != nil {
			return
		}
	}
}

// take returns what passed since the last call.
func (r *relay) take(t *testing.T) (up, down [][]byte) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.firstFail != nil {
		t.Fatal(r.firstFail)
	}
	up, down = r.up, r.down
	r.up, r.down = nil, nil
	return up, down
}
