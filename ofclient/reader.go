package ofclient

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// readBuffer holds the longest message.
const readBuffer = ofp.MaxLen + 1

// readLoop is the only reader of the connection. Nothing it does waits for a
// consumer: answers complete requests, port events go into the table, echo
// requests are answered through a queue that it never waits for. So a
// starved or stuck agent still keeps its session.
func (c *Conn) readLoop() {
	log := rateLog{logger: c.logger}
	br := bufio.NewReaderSize(c.nc, readBuffer)
	buf := make([]byte, ofp.MaxLen)
	greeted := false
	for {
		frame, h, err := readFrame(br, buf, !greeted)
		if err != nil {
			c.fail(err)
			return
		}
		c.lastRead.Store(int64(time.Since(c.start)))
		xid, m, err := ofp.Decode(frame)
		if !greeted {
			if err := negotiate(m, err); err != nil {
				c.fail(err)
				return
			}
			greeted = true
			close(c.hello)
			continue
		}
		if h.Version != ofp.Version {
			c.fail(fmt.Errorf("the switch agreed on OpenFlow 1.5 and then sent a message of version %d", h.Version))
			return
		}
		if err != nil {
			// The frame's borders are known, so the stream can go on (a
			// vendor's extension must not cost the session), but whoever
			// waits for this answer must not wait for ever.
			c.cfg.Observer.Dropped(DropUndecodable)
			log.failed(err, "Dropped a malformed OpenFlow message")
			c.complete(xid, nil, err)
			continue
		}
		if !c.handle(xid, m) {
			c.cfg.Observer.Dropped(DropUnexpected)
			c.logger.V(4).Info("Dropped an unexpected OpenFlow message", "type", m.Type(), "xid", xid, "message", m)
		}
	}
}

// readFrame reads one whole message into buf. The first one must look like
// OpenFlow before its length is believed.
func readFrame(r io.Reader, buf []byte, first bool) ([]byte, ofp.Header, error) {
	if _, err := io.ReadFull(r, buf[:ofp.HeaderLen]); err != nil {
		return nil, ofp.Header{}, fmt.Errorf("read from the switch: %w", err)
	}
	h, err := ofp.ParseHeader(buf[:ofp.HeaderLen])
	if err != nil {
		return nil, h, fmt.Errorf("the stream from the switch lost its framing: %w", err)
	}
	if first && h.Type != ofp.TypeHello && h.Type != ofp.TypeError {
		return nil, h, fmt.Errorf("the peer began with %s of version %d instead of a hello: is it an OpenFlow switch?", h.Type, h.Version)
	}
	frame := buf[:h.Length]
	if _, err := io.ReadFull(r, frame[ofp.HeaderLen:]); err != nil {
		return nil, h, fmt.Errorf("read from the switch: %w", err)
	}
	return frame, h, nil
}

// handle reports whether anybody wanted m.
func (c *Conn) handle(xid uint32, m ofp.Message) bool {
	switch m := m.(type) {
	case *ofp.EchoRequest:
		frame, err := ofp.Append(nil, xid, &ofp.EchoReply{Data: m.Data})
		if err != nil || !c.sendUrgent(&write{frames: frame}) {
			c.cfg.Observer.Dropped(DropEcho)
		}
		return true
	case *ofp.EchoReply:
		if len(m.Data) == probeLen {
			c.overtaken(binary.BigEndian.Uint64(m.Data))
		}
		return true
	case *ofp.PortStatus:
		if names := c.ports.event(m); len(names) > 0 {
			c.onPorts(c, names)
		}
		return true
	case *ofp.Hello:
		return true // a second one changes nothing
	}
	return c.complete(xid, m, nil)
}

// complete gives an answer, or why it cannot be read, to the request of its xid.
func (c *Conn) complete(xid uint32, m ofp.Message, bad error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.pending {
		if xid-r.base >= r.n {
			continue
		}
		complete, err := true, bad
		if bad == nil {
			complete, err = r.accept(xid, m)
		}
		if complete || err != nil {
			r.err = err
			c.remove(r)
			close(r.done)
		}
		return true
	}
	return false
}
