package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// Numbers of OpenFlow 1.5 that scenarios care about.
const (
	typePortStatus    = 12 // OFPT_PORT_STATUS
	typeBundleControl = 33 // OFPT_BUNDLE_CONTROL
	commitReply       = 5  // OFPBCT_COMMIT_REPLY
)

// IsPortStatus reports whether a message tells of a port.
func IsPortStatus(frame []byte) bool { return frame[1] == typePortStatus }

// IsCommitReply reports whether a message says that a bundle was committed.
func IsCommitReply(frame []byte) bool {
	return frame[1] == typeBundleControl && len(frame) >= 14 && binary.BigEndian.Uint16(frame[12:]) == commitReply
}

// Relay stands between the agent and the bridge's OpenFlow socket and can cut
// the connection, or lose or hold back single messages of the switch.
type Relay struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	links  map[net.Conn]struct{}
	judge  func(frame []byte) Verdict
	held   []func()
	counts map[Verdict]int
	live   map[string]time.Time // when the switch first said of a port that it is live
}

// Verdict is what a Relay does with a message of the switch.
type Verdict int

// Verdicts.
const (
	Forward Verdict = iota
	Lose
	Hold // until Release; later messages overtake it
)

// StartRelay listens on the unix socket listen for connections to the unix socket target.
func StartRelay(listen, target string) (*Relay, error) {
	if err := os.Remove(listen); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", listen)
	if err != nil {
		return nil, err
	}
	r := &Relay{target: target, listener: l, links: map[net.Conn]struct{}{}, counts: map[Verdict]int{}, live: map[string]time.Time{}}
	r.wg.Go(r.accept)
	return r, nil
}

// Endpoint is where the agent connects, in the words of its configuration.
func (r *Relay) Endpoint() string { return "unix:" + r.listener.Addr().String() }

// Cut closes every connection and lets no new one through until Mend.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	for c := range r.links {
		c.Close()
	}
}

// Mend ends a cut.
func (r *Relay) Mend() { r.mu.Lock(); defer r.mu.Unlock(); r.cut = false }

// Judge sets who decides on the switch's messages; nil forwards them all.
func (r *Relay) Judge(judge func(frame []byte) Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judge = judge
}

// Count is how many messages got that verdict.
func (r *Relay) Count(v Verdict) int { r.mu.Lock(); defer r.mu.Unlock(); return r.counts[v] }

// Release forwards what was held.
func (r *Relay) Release() {
	r.mu.Lock()
	held := r.held
	r.held = nil
	r.mu.Unlock()
	for _, send := range held {
		send()
	}
}

// Close ends the relay and its connections.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.Cut()
	r.wg.Wait()
	return err
}

func (r *Relay) accept() {
	for {
		agent, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		ovs, err := net.Dial("unix", r.target)
		r.mu.Lock()
		if err != nil || r.cut {
			agent.Close()
			if ovs != nil {
				ovs.Close()
			}
		} else {
			r.links[agent], r.links[ovs] = struct{}{}, struct{}{}
			r.wg.Go(func() { defer r.end(agent, ovs); io.Copy(ovs, agent) })
			r.wg.Go(func() { defer r.end(agent, ovs); r.answers(agent, ovs) })
		}
		r.mu.Unlock()
	}
}

func (r *Relay) end(links ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range links {
		c.Close()
		delete(r.links, c)
	}
}

// answers forwards what the switch sends, frame by frame.
func (r *Relay) answers(agent, ovs net.Conn) {
	var write sync.Mutex
	for {
		frame, err := readFrame(ovs)
		if err != nil {
			return
		}
		send := func() {
			write.Lock()
			defer write.Unlock()
			agent.Write(frame) // an agent that is gone reads nothing
		}
		r.mu.Lock()
		r.notice(frame)
		verdict := Forward
		if r.judge != nil {
			verdict = r.judge(frame)
		}
		r.counts[verdict]++
		if verdict == Hold {
			r.held = append(r.held, send)
		}
		r.mu.Unlock()
		if verdict == Forward {
			send()
		}
	}
}

// notice keeps the moment at which a port became live.
func (r *Relay) notice(frame []byte) {
	if !IsPortStatus(frame) {
		return
	}
	_, m, err := ofp.Decode(frame)
	status, ok := m.(*ofp.PortStatus)
	if err != nil || !ok || status.Desc.State&ofp.PortStateLive == 0 {
		return
	}
	if _, seen := r.live[status.Desc.Name]; !seen {
		r.live[status.Desc.Name] = time.Now()
	}
}

// Live returns when the switch first told the agent that the port is live;
// false when no PORT_STATUS said so.
func (r *Relay) Live(port string) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.live[port]
	return at, ok
}

// readFrame reads one OpenFlow message: version, type, length, xid, body.
func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(head[2:]))
	if size < len(head) {
		return nil, fmt.Errorf("frame of length %d", size)
	}
	frame := append(head, make([]byte, size-len(head))...)
	_, err := io.ReadFull(r, frame[len(head):])
	return frame, err
}
