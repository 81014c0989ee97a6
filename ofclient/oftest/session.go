package oftest

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// session is one connection to the switch.
type session struct {
	sw     *Switch
	nc     net.Conn
	id     int
	done   chan struct{}
	kick   chan struct{} // capacity 1: there is something to write
	closer sync.Once

	out struct {
		sync.Mutex
		frames [][]byte // unbounded, so that the switch never stops reading
	}

	subscribed bool // guarded by sw.mu
	bundles    map[uint32]*bundle
	bundleMu   sync.Mutex
}

func newSession(sw *Switch, nc net.Conn, id int) *session {
	return &session{sw: sw, nc: nc, id: id, done: make(chan struct{}), kick: make(chan struct{}, 1), bundles: make(map[uint32]*bundle)}
}

func (s *session) close() {
	s.closer.Do(func() {
		close(s.done)
		s.nc.Close()
	})
}

func (s *session) write(b []byte) {
	s.out.Lock()
	s.out.frames = append(s.out.frames, b)
	s.out.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

func (s *session) reply(xid uint32, m ofp.Message) { s.write(encode(xid, m)) }

// gate waits while the switch is paused and reports whether the session goes on.
func (s *session) gate() bool {
	for {
		p := s.sw.pause()
		if p == nil {
			select {
			case <-s.done:
				return false
			default:
				return true
			}
		}
		select {
		case <-p:
		case <-s.done:
			return false
		}
	}
}

func (s *session) writeLoop() {
	for {
		select {
		case <-s.kick:
		case <-s.done:
			return
		}
		s.out.Lock()
		frames := s.out.frames
		s.out.frames = nil
		s.out.Unlock()
		for _, f := range frames {
			for len(f) > 0 {
				if !s.gate() {
					return
				}
				n := len(f)
				if split := s.sw.getFaults().SplitWrites; split > 0 {
					n = min(n, split)
				}
				if _, err := s.nc.Write(f[:n]); err != nil {
					s.close()
					return
				}
				f = f[n:]
			}
		}
	}
}

func (s *session) readLoop() {
	defer func() {
		s.close()
		s.dropBundles()
		s.sw.mu.Lock()
		delete(s.sw.sessions, s)
		s.sw.mu.Unlock()
	}()
	if f := s.sw.getFaults(); !f.NoHello {
		versions := f.Versions
		if versions == nil {
			versions = []uint8{ofp.Version}
		}
		s.reply(0, &ofp.Hello{Versions: versions})
	}
	br := bufio.NewReader(s.nc)
	for {
		frame, err := readFrame(br)
		if err != nil || !s.gate() || !s.serve(frame) {
			return
		}
	}
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
	frame := append(head, make([]byte, int(h.Length)-ofp.HeaderLen)...)
	_, err = io.ReadFull(r, frame[ofp.HeaderLen:])
	return frame, err
}

// serve handles one message and reports whether the session goes on.
func (s *session) serve(frame []byte) bool {
	f := s.sw.getFaults()
	xid, m, err := ofp.Decode(frame)
	if err != nil {
		s.reply(xid, &ofp.Error{ErrType: 1, Code: 6, Data: frame[:min(len(frame), 64)]}) // OFPBRC_BAD_LEN
		return true
	}
	if f.ReplyDelay > 0 {
		timer := time.NewTimer(f.ReplyDelay)
		select {
		case <-timer.C:
		case <-s.done:
			timer.Stop()
			return false
		}
	}
	if _, ok := m.(*ofp.Hello); ok && f.RefuseVersion {
		// Written here: the connection must not close before it is out.
		s.nc.Write(encode(xid, &ofp.Error{Data: []byte("We support version 0x04, you support version 0x06, no common versions.")}))
		return false
	}
	if f.NoHello || f.SilentAfterHello {
		return true
	}
	switch m := m.(type) {
	case *ofp.EchoRequest:
		s.reply(xid, &ofp.EchoReply{Data: m.Data})
		return true
	case *ofp.EchoReply:
		s.sw.record(Received{s.id, xid, m})
		return true
	}
	s.sw.record(Received{s.id, xid, m})
	verdict := Pass
	if f.OnMessage != nil {
		s.sw.hooks.Lock()
		verdict = f.OnMessage(s.id, xid, m)
		s.sw.hooks.Unlock()
	}
	switch verdict {
	case Drop:
		return true
	case Close:
		return false
	case CloseAfter:
		s.close()
		s.handle(f, xid, m)
		return false
	}
	s.handle(f, xid, m)
	return true
}

func (s *session) handle(f Faults, xid uint32, m ofp.Message) {
	switch m := m.(type) {
	case *ofp.FeaturesRequest:
		s.reply(xid, &ofp.FeaturesReply{DatapathID: DatapathID, Tables: 254})
	case *ofp.SetAsync:
		if f.RefuseSetAsync {
			s.reply(xid, &ofp.Error{ErrType: 1, Code: 1}) // OFPBRC_BAD_TYPE
			return
		}
		for _, p := range m.Props {
			if p.Type == ofp.AsyncPortStatus {
				s.subscribe(p.Mask != 0)
			}
		}
	case *ofp.SetConfig:
		s.subscribe(m.MissSendLen != 0)
	case *ofp.BarrierRequest:
		s.reply(xid, &ofp.BarrierReply{})
	case *ofp.PortDescRequest:
		s.listPorts(f, xid)
	case *ofp.FlowStatsRequest:
		s.listFlows(xid, m)
	case *ofp.FlowMod:
		for _, fail := range []func(ofp.FlowMod) *ofp.Error{f.FailAdd, f.FailCommit} {
			if e := s.sw.judge(fail, *m); e != nil {
				s.reply(xid, e)
				return
			}
		}
		s.sw.applyFlows([]ofp.FlowMod{*m})
	case *ofp.BundleControl:
		s.bundleControl(f, xid, m)
	case *ofp.BundleAdd:
		s.bundleAdd(f, xid, m)
	case *ofp.CTFlush, *ofp.Hello, *ofp.Error:
	default:
		s.reply(xid, &ofp.Error{ErrType: 1, Code: 1}) // OFPBRC_BAD_TYPE
	}
}

func (s *session) subscribe(on bool) {
	s.sw.mu.Lock()
	defer s.sw.mu.Unlock()
	s.subscribed = on
}

// judge runs a function of Faults on a flow change.
func (s *Switch) judge(fail func(ofp.FlowMod) *ofp.Error, mod ofp.FlowMod) *ofp.Error {
	if fail == nil {
		return nil
	}
	s.hooks.Lock()
	defer s.hooks.Unlock()
	return fail(mod)
}
