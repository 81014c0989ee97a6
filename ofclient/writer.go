package ofclient

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// maxWrite is the most that is written under one deadline, and so the longest
// that an echo reply waits behind a bundle.
const maxWrite = 64 << 10

// writeLoop is the only writer of the connection.
func (c *Conn) writeLoop() {
	for {
		var w *write
		select {
		case <-c.done:
			return
		case w = <-c.urgent:
		default:
			select {
			case <-c.done:
				return
			case w = <-c.urgent:
			case w = <-c.writes:
			}
		}
		if err := c.writeAll(w); err != nil {
			c.fail(err)
			return
		}
	}
}

// writeAll writes w in pieces of whole messages and lets urgent ones pass between them.
func (c *Conn) writeAll(w *write) error {
	rest := w.frames
	c.beginWrite(w)
	for len(rest) > 0 {
		n := pieceLen(rest)
		if err := c.writePiece(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
		if len(rest) == 0 {
			break
		}
		select {
		case u := <-c.urgent:
			if err := c.writeAll(u); err != nil { // one message: no deeper than this
				return err
			}
		default:
		}
	}
	c.written(w)
	return nil
}

func (c *Conn) writePiece(b []byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return fmt.Errorf("write to the switch: %w", err)
	}
	if _, err := c.nc.Write(b); err != nil {
		return fmt.Errorf("write to the switch: %w", err)
	}
	return nil
}

// beginWrite notes that an answer is awaited from here on; it may come before
// the writer has noted the end of the write.
func (c *Conn) beginWrite(w *write) {
	if w.req != nil {
		c.mu.Lock()
		w.req.awaited, w.req.stamp = true, unwritten
		c.mu.Unlock()
	}
}

// written notes when a request was complete on the wire.
func (c *Conn) written(w *write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.probe {
		c.probes++
	}
	if w.req != nil {
		w.req.stamp = c.probes
	}
}

// pieceLen is the length of the first messages of frames that fit into maxWrite, at least one.
func pieceLen(frames []byte) int {
	n := 0
	for n < len(frames) {
		next := n + int(binary.BigEndian.Uint16(frames[n+2:]))
		if n > 0 && next > maxWrite {
			break
		}
		n = next
	}
	return n
}

// probeLen is the length of the data of our echo requests: their number.
const probeLen = 8

// probeLoop sends an echo request every interval and ends the session when the
// peer has been silent for two of them: at the latest three intervals after
// its last word, and at the earliest one interval after an unanswered probe.
func (c *Conn) probeLoop() {
	interval := c.cfg.EchoInterval
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := time.Now()
	for n := uint64(1); ; {
		select {
		case <-c.done:
			return
		case <-ticker.C:
		}
		now := time.Now()
		silent := now.Sub(c.start) - time.Duration(c.lastRead.Load())
		// A late tick means that we were asleep (CPU limit, suspended machine): the
		// silence may be ours, the reader has not had its turn yet.
		if late := now.Sub(last) > interval*3/2; silent >= 2*interval && !late {
			c.fail(fmt.Errorf("the switch is silent: nothing received for %v, echo requests included", silent.Round(time.Millisecond)))
			return
		}
		last = now
		frame, err := ofp.Append(nil, 0, &ofp.EchoRequest{Data: binary.BigEndian.AppendUint64(nil, n)})
		// Numbered as they are written, for that is what requests are compared with.
		if err == nil && c.sendUrgent(&write{frames: frame, probe: true}) {
			n++
		}
	}
}

// overtaken ends the session when a request has had no answer though the
// switch answered the second probe after it. A switch handles the messages of
// one connection in order, so the answer will never come; no fixed time limit
// could tell that from a busy switch.
func (c *Conn) overtaken(probe uint64) {
	c.mu.Lock()
	late := false
	for _, r := range c.pending {
		late = late || r.awaited && probe > r.stamp+1
	}
	c.mu.Unlock()
	if late {
		c.fail(errNoAnswer)
	}
}
