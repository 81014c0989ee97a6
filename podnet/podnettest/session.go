package podnettest

import (
	"maps"
	"sync"

	"github.com/antrea-lite/podnet/podnet/async"
)

// Session is what an agent knows of the switch's ports: a podnet.PortTable in
// memory. Whoever plays the switch tells it. Methods may be called concurrently.
type Session struct {
	mu    sync.Mutex
	up    bool
	ports map[string]async.PortState
	known map[string]async.PortState // of this session and, until the watches were told, of the one before
	watch []*NameWatch
}

// NewSession returns one that is not connected.
func NewSession() *Session { return &Session{} }

// List makes ports what the session knows, as the answer to a request for them.
func (s *Session) List(ports map[string]async.PortState) {
	s.mu.Lock()
	old := s.ports
	s.up, s.ports = true, maps.Clone(ports)
	var differ []string
	for name, p := range ports {
		if was, ok := old[name]; !ok || was != p {
			differ = append(differ, name)
		}
	}
	for name := range old {
		if _, ok := ports[name]; !ok {
			differ = append(differ, name)
		}
	}
	s.mu.Unlock()
	s.tell(differ)
}

// Tell is a PORT_STATUS: the port was added or changed, or the port of that
// name and number is gone.
func (s *Session) Tell(name string, port async.PortState, gone bool) {
	s.mu.Lock()
	if !s.up {
		s.mu.Unlock()
		return
	}
	switch {
	case !gone:
		s.ports[name] = port
	case s.ports[name].Number == port.Number:
		delete(s.ports, name)
	}
	s.mu.Unlock()
	s.tell([]string{name})
}

// End ends the session: no port is known from now on.
func (s *Session) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = s.ports
	s.up, s.ports = false, nil
}

// Ready tells the watches every port, also those that the session before had.
func (s *Session) Ready() {
	s.mu.Lock()
	names := make([]string, 0, len(s.ports)+len(s.known))
	for name := range s.ports {
		names = append(names, name)
	}
	for name := range s.known {
		names = append(names, name)
	}
	s.known = nil
	s.mu.Unlock()
	s.tell(names)
}

// Port returns the latest state of a port; for async.Config.Ports.
func (s *Session) Port(name string) (async.PortState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.ports[name]
	return p, ok
}

// PortState implements podnet.PortTable.
func (s *Session) PortState(name string) (number uint32, ok bool) {
	p, ok := s.Port(name)
	return p.Number, ok
}

// Watch reports the names of ports that change, from now on; an async.Watch.
func (s *Session) Watch() *NameWatch {
	w := &NameWatch{signal: make(chan struct{}, 1), names: make(map[string]struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = append(s.watch, w)
	return w
}

func (s *Session) tell(names []string) {
	if len(names) == 0 {
		return
	}
	s.mu.Lock()
	watches := s.watch
	s.mu.Unlock()
	for _, w := range watches {
		w.add(names)
	}
}
