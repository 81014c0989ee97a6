package ofclient

import (
	"context"
	"fmt"
	"sync"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// portSet holds ports by number and finds the latest number of a name. Both
// keys are needed: when another port steals a number, Open vSwitch tells ADD of
// the name's new number before or after DELETE of its old one, and DELETE of
// the old must not remove the new.
type portSet struct {
	byNumber map[uint32]ofp.PortDesc
	numbers  map[string]uint32 // the number that was seen last under a name
}

func newPortSet() portSet {
	return portSet{byNumber: make(map[uint32]ofp.PortDesc), numbers: make(map[string]uint32)}
}

func (s *portSet) byName(name string) (ofp.PortDesc, bool) {
	n, ok := s.numbers[name]
	return s.byNumber[n], ok
}

// put adds or changes a port and returns the names that it touched.
func (s *portSet) put(d ofp.PortDesc) []string {
	names := []string{d.Name}
	if old, ok := s.byNumber[d.Number]; ok && old.Name != d.Name {
		// The number has another owner now; the DELETE of the old one is lost or still to come.
		s.drop(old)
		names = append(names, old.Name)
	}
	s.byNumber[d.Number] = d
	s.numbers[d.Name] = d.Number
	return names
}

// remove removes a port if the number still is that name's.
func (s *portSet) remove(d ofp.PortDesc) []string {
	old, ok := s.byNumber[d.Number]
	if !ok || old.Name != d.Name {
		return nil
	}
	s.drop(old)
	return []string{d.Name}
}

func (s *portSet) drop(d ofp.PortDesc) {
	delete(s.byNumber, d.Number)
	if s.numbers[d.Name] != d.Number {
		return
	}
	delete(s.numbers, d.Name)
	for n, other := range s.byNumber {
		if other.Name == d.Name {
			s.numbers[d.Name] = n
			return
		}
	}
}

// portTable is what one session knows of the ports. Lists in progress are
// merged with the events that arrive meanwhile, in order of arrival.
type portTable struct {
	mu     sync.Mutex
	set    portSet
	listed bool // one list is complete
	lists  []*portList
}

// portList is a list in progress.
type portList struct {
	set     portSet
	started bool            // its first part has arrived: events are newer than the snapshot
	newer   map[uint32]bool // numbers that events have spoken of since
	all     []ofp.PortDesc  // the parts as they came
}

// byName returns the latest state of a port; false until the ports are listed.
func (t *portTable) byName(name string) (ofp.PortDesc, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.listed {
		return ofp.PortDesc{}, false
	}
	return t.set.byName(name)
}

// names returns every known name.
func (t *portTable) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.set.numbers))
	for name := range t.set.numbers {
		names = append(names, name)
	}
	return names
}

// event takes a PORT_STATUS and returns the names whose state may have changed.
func (t *portTable) event(m *ofp.PortStatus) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	apply := (*portSet).put
	if m.Reason == ofp.PortDeleted {
		apply = (*portSet).remove
	}
	for _, l := range t.lists {
		if l.started {
			apply(&l.set, m.Desc)
			l.newer[m.Desc.Number] = true
		}
	}
	return apply(&t.set, m.Desc)
}

func (t *portTable) begin() *portList {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &portList{set: newPortSet(), newer: make(map[uint32]bool)}
	t.lists = append(t.lists, l)
	return l
}

func (t *portTable) end(l *portList) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, x := range t.lists {
		if x == l {
			t.lists = append(t.lists[:i], t.lists[i+1:]...)
			return
		}
	}
}

// part takes one part of a list; with the last one the list replaces the
// table, and the names that differ are returned.
func (t *portTable) part(l *portList, ports []ofp.PortDesc, last bool) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.started = true
	l.all = append(l.all, ports...)
	for _, d := range ports {
		if l.newer[d.Number] {
			continue
		}
		if n, ok := l.set.numbers[d.Name]; ok && l.newer[n] {
			l.set.byNumber[d.Number] = d // the event's number stays the name's latest
			continue
		}
		l.set.put(d)
	}
	if !last {
		return nil
	}
	var differ []string
	for name := range l.set.numbers {
		was, ok := t.set.byName(name)
		if is, _ := l.set.byName(name); !ok || is != was {
			differ = append(differ, name)
		}
	}
	for name := range t.set.numbers {
		if _, ok := l.set.numbers[name]; !ok {
			differ = append(differ, name)
		}
	}
	t.set, t.listed = l.set, true
	return differ
}

// Ports asks the switch for its ports. The answer also corrects what the
// session knows of them.
func (c *Conn) Ports(ctx context.Context) ([]ofp.PortDesc, error) {
	ports, _, err := c.listPorts(ctx)
	return ports, err
}

// listPorts also returns how many ports differ from what events had told.
func (c *Conn) listPorts(ctx context.Context) (ports []ofp.PortDesc, differ int, err error) {
	l := c.ports.begin()
	defer c.ports.end(l)
	err = c.query(ctx, &ofp.PortDescRequest{}, func(m ofp.Message) (bool, error) {
		reply, ok := m.(*ofp.PortDescReply)
		if !ok {
			return true, unexpected(m)
		}
		// Merged by the reader, so that no later event can come in between.
		if names := c.ports.part(l, reply.Ports, !reply.More); len(names) > 0 {
			differ = len(names)
			c.onPorts(c, names)
		}
		return !reply.More, nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list the switch's ports: %w", err)
	}
	return l.all, differ, nil
}
