package podflows_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/packet"
)

// send sends a frame from a station and returns what arrived where, known by its
// tag, which is taken out again. The end is told by a marker that the switch itself sends to everybody
// afterwards, so that nothing has to be waited for.
func (l *lab) send(from string, frame []byte) map[string][]byte {
	l.t.Helper()
	*l.tags++
	tag := tagOf(uint32(*l.tags))
	bare, blank := bytes.CutSuffix(frame, blankTag)
	frame = slices.Concat(bare, tag)
	if _, err := l.pod(from).conn.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]}); err != nil {
		l.t.Fatal(err)
	}
	marker := frameOf([6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, [6]byte{2, 0xee}, 0x88b5, tag)
	all := append([]*station{l.gateway}, l.stations...)
	outs := make([]string, len(all))
	for n, s := range all {
		outs[n] = fmt.Sprintf("output:%d", s.iface.OFPort)
	}
	if _, err := l.sw.Ofctl("packet-out", "unix:"+l.sw.MgmtSock(bridge),
		"in_port=controller packet="+hex.EncodeToString(marker)+" actions="+strings.Join(outs, ",")); err != nil {
		l.t.Fatal(err)
	}
	got := map[string][]byte{}
	buf := make([]byte, 4096)
	for _, s := range all {
		l.ok(s.conn.SetReadDeadline(time.Now().Add(10 * time.Second)))
		for {
			n, _, err := s.conn.ReadFrom(buf)
			if err != nil {
				l.t.Fatalf("%s: waiting for the marker: %v", s.name, err)
			}
			b := buf[:n]
			if bytes.Equal(b[:min(n, len(marker))], marker) {
				break
			}
			// An ICMP error that quotes the frame ends with the tag too, and is longer.
			if n == len(frame) && bytes.HasSuffix(b, tag) {
				if _, twice := got[s.name]; twice {
					l.t.Errorf("%s got the frame twice", s.name)
				}
				got[s.name] = slices.Clone(b[:n-len(tag)])
				if blank {
					got[s.name] = append(got[s.name], blankTag...)
				}
			}
		}
	}
	return got
}

// expect sends a frame and compares who got it. It returns the copies.
func (l *lab) expect(from string, frame []byte, want ...string) map[string][]byte {
	l.t.Helper()
	slices.Sort(want)
	got := l.send(from, frame)
	// The kernel datapath asks ovs-vswitchd about the first packets of a kind
	// from other threads, so the marker may overtake them there. The trace
	// has no such doubt.
	for n := 0; *datapath == "system" && n < 20 && (n == 0 || !slices.Equal(receivers(got), want)); n++ {
		got = l.send(from, frame)
	}
	if !slices.Equal(receivers(got), want) {
		l.t.Errorf("from %s: arrived at %v, want %v\nframe %x\n%s", from, receivers(got), want, frame, l.trace(from, frame))
	} else if trace := l.trace(from, frame); *datapath == "system" && (len(want) == 0) != endsInDrop(trace) {
		l.t.Errorf("from %s: arrived at %v, the trace says otherwise\nframe %x\n%s", from, want, frame, trace)
	}
	return got
}

// endsInDrop reads the last line of a trace; a packet can be committed and have nowhere to go.
func endsInDrop(trace string) bool {
	return strings.HasSuffix(trace, "Datapath actions: drop") || strings.HasSuffix(trace, "ct(commit,zone=57344)")
}

func receivers(got map[string][]byte) []string { return slices.Sorted(maps.Keys(got)) }

func (l *lab) trace(from string, frame []byte) string {
	out, err := l.sw.Appctl("ofproto/trace", bridge, fmt.Sprintf("in_port=%d", l.pod(from).iface.OFPort), hex.EncodeToString(frame))
	if err != nil {
		return err.Error()
	}
	return out
}
