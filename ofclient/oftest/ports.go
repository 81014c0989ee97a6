package oftest

import (
	"slices"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// AddPort adds a port, or replaces the one of that number, and tells it.
func (s *Switch) AddPort(d ofp.PortDesc) { s.setPort(ofp.PortAdded, d) }

// ModifyPort changes a port and tells it.
func (s *Switch) ModifyPort(d ofp.PortDesc) { s.setPort(ofp.PortModified, d) }

func (s *Switch) setPort(reason ofp.PortReason, d ofp.PortDesc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports[d.Number] = d
	s.tell(&ofp.PortStatus{Reason: reason, Desc: d})
}

// DeletePort removes the port of that number, if there is one, and tells it.
func (s *Switch) DeletePort(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.ports[number]
	if !ok {
		return
	}
	delete(s.ports, number)
	s.tell(&ofp.PortStatus{Reason: ofp.PortDeleted, Desc: d})
}

// PortStatus tells subscribers something without changing the ports.
func (s *Switch) PortStatus(reason ofp.PortReason, d ofp.PortDesc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(&ofp.PortStatus{Reason: reason, Desc: d})
}

func (s *Switch) tell(m *ofp.PortStatus) {
	if s.faults.DropPortStatus > 0 {
		s.faults.DropPortStatus--
		return
	}
	b := encode(0, m)
	for ses := range s.sessions {
		if ses.subscribed {
			ses.write(b)
		}
	}
}

// listPorts answers with a snapshot, in parts.
func (s *session) listPorts(f Faults, xid uint32) {
	s.sw.mu.Lock()
	ports := make([]ofp.PortDesc, 0, len(s.sw.ports))
	for _, d := range s.sw.ports {
		ports = append(ports, d)
	}
	slices.SortFunc(ports, func(a, b ofp.PortDesc) int { return int(int64(a.Number) - int64(b.Number)) })
	if f.BetweenParts == nil {
		defer s.sw.mu.Unlock() // no event may come between snapshot and answer
	} else {
		s.sw.mu.Unlock()
	}
	size := f.PortsPerPart
	if size == 0 {
		size = 100
	}
	for {
		n := min(size, len(ports))
		more := n < len(ports)
		s.reply(xid, &ofp.PortDescReply{Ports: ports[:n], More: more})
		if !more {
			return
		}
		ports = ports[n:]
		if f.BetweenParts != nil {
			s.sw.hooks.Lock()
			f.BetweenParts()
			s.sw.hooks.Unlock()
		}
	}
}
