package oftest

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// DatapathID is what every Switch answers.
const DatapathID = 0x0000_0a0b_0c0d_0e0f

// Switch is one bridge. Its tables outlive its connections. All methods may be
// called concurrently.
type Switch struct {
	wg sync.WaitGroup

	hooks sync.Mutex // held while a function of Faults runs

	mu       sync.Mutex
	faults   Faults
	closed   bool
	paused   chan struct{} // closed when the pause ends; nil: running
	sessions map[*session]struct{}
	opened   int // sessions so far
	flows    flowTable
	ports    map[uint32]ofp.PortDesc
	received []Received
	listener []net.Listener
}

// Received is one message that the switch got.
type Received struct {
	Session int // 1, 2, ...
	XID     uint32
	Message ofp.Message
}

// New returns a switch without ports and flows. Close it.
func New() *Switch {
	return &Switch{sessions: make(map[*session]struct{}), flows: make(flowTable), ports: make(map[uint32]ofp.PortDesc)}
}

// Dial connects to the switch; it is a Config.Dial.
func (s *Switch) Dial(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	if err := s.attach(server); err != nil {
		return nil, errors.Join(err, client.Close(), server.Close())
	}
	return client, nil
}

// Serve accepts connections from l until Close, which closes l.
func (s *Switch) Serve(l net.Listener) {
	s.mu.Lock()
	s.listener = append(s.listener, l)
	s.mu.Unlock()
	s.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			if s.attach(nc) != nil {
				nc.Close()
			}
		}
	})
}

func (s *Switch) attach(nc net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	if s.faults.RefuseDial != nil {
		return s.faults.RefuseDial
	}
	s.opened++
	ses := newSession(s, nc, s.opened)
	s.sessions[ses] = struct{}{}
	s.wg.Go(ses.readLoop)
	s.wg.Go(ses.writeLoop)
	return nil
}

// Close ends all connections and waits for their goroutines.
func (s *Switch) Close() {
	s.Resume()
	s.mu.Lock()
	s.closed = true
	for _, l := range s.listener {
		l.Close()
	}
	s.mu.Unlock()
	s.DropSessions()
	s.wg.Wait()
}

// DropSessions closes all connections; new ones are accepted.
func (s *Switch) DropSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.sessions {
		ses.close()
	}
}

// Restart does what a restart of Open vSwitch does: connections and flows are gone, ports stay.
func (s *Switch) Restart() {
	s.mu.Lock()
	s.flows = make(flowTable)
	s.mu.Unlock()
	s.DropSessions()
}

// Pause freezes the switch as SIGSTOP does: it neither reads nor writes.
func (s *Switch) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused == nil {
		s.paused = make(chan struct{})
	}
}

// Resume ends a pause.
func (s *Switch) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused != nil {
		close(s.paused)
		s.paused = nil
	}
}

func (s *Switch) pause() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

// SetFaults changes the faults from now on.
func (s *Switch) SetFaults(change func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

func (s *Switch) getFaults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// Sessions returns how many connections there are, and how many there were in all.
func (s *Switch) Sessions() (now, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions), s.opened
}

// Received returns every message so far, in the order of arrival.
func (s *Switch) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Received(nil), s.received...)
}

// SendRaw sends bytes as they are to every connection.
func (s *Switch) SendRaw(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.sessions {
		ses.write(b)
	}
}

// Send sends a message to every connection.
func (s *Switch) Send(xid uint32, m ofp.Message) {
	s.SendRaw(encode(xid, m))
}

// encode panics on a message that has no wire form: that is a mistake in a test.
func encode(xid uint32, m ofp.Message) []byte {
	b, err := ofp.Append(nil, xid, m)
	if err != nil {
		panic(err)
	}
	return b
}

func (s *Switch) record(r Received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, r)
}
