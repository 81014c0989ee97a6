package ofp

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
)

// allocPerByte bounds how many bytes Decode may allocate for one byte of frame.
// The densest frame is a match of one-byte fields: 5 bytes become one Field.
const allocPerByte = 20

// allocated measures the bytes that one Decode takes from the heap. The count
// is the whole program's and the runtime allocates now and then, on Windows
// more often; Decode itself does the same each time, so the least of three is its own.
func allocated(frame []byte) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _ = Decode(frame)
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// densest are frames that make most of few bytes.
func densest() map[string][]byte {
	fill := func(typ Type, head []byte, unit ...byte) []byte {
		b := append([]byte{Version, byte(typ), 0, 0, 0, 0, 0, 1}, head...)
		for len(b)+len(unit) <= MaxLen {
			b = append(b, unit...)
		}
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		return b
	}
	mp := func(kind byte) []byte { return []byte{0, kind, 0, 0, 0, 0, 0, 0} }
	mod := make([]byte, 40)
	binary.BigEndian.PutUint32(mod[24:], noBufferID)
	emptyFlow := append(append([]byte{0, 40}, make([]byte, 22)...), 0, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0)
	port := make([]byte, 40)
	port[5] = 40
	// Unknown fields of one byte each, no two alike.
	matchOnly := fill(TypeFlowMod, append(mod, 0, 1, 0, 0), 0)
	matchOnly = matchOnly[:len(matchOnly)&^7]
	end := len(matchOnly) - 48
	for i := 0; 4+5*(i+1) <= end; i++ {
		at := 52 + 5*i
		copy(matchOnly[at:], []byte{0x20, byte(i / 128), byte(i%128) << 1, 1, 6})
		binary.BigEndian.PutUint16(matchOnly[50:], uint16(at+5-48))
	}
	binary.BigEndian.PutUint16(matchOnly[2:], uint16(len(matchOnly)))
	oneMatch := append(mod, 0, 1, 0, 4, 0, 0, 0, 0)
	apply := append(append([]byte(nil), oneMatch...), 0, instApplyActions, 0, 0, 0, 0, 0, 0)
	actions := fill(TypeFlowMod, apply, 0, actPopVLAN, 0, 8, 0, 0, 0, 0)
	binary.BigEndian.PutUint16(actions[8+len(oneMatch)+2:], uint16(len(actions)-8-len(oneMatch)))
	return map[string][]byte{
		"fields":       matchOnly,
		"actions":      actions,
		"instructions": fill(TypeFlowMod, oneMatch, 0, 99, 0, 8, 0, 0, 0, 0),
		"flows":        fill(TypeMultipartReply, mp(mpFlowDesc), emptyFlow...),
		"ports":        fill(TypeMultipartReply, mp(mpPortDesc), port...),
		"async":        fill(TypeSetAsync, nil, 0, 3, 0, 8, 0, 0, 0, 7),
		"hello":        fill(TypeHello, nil, 0, 1, 0, 8, 0xff, 0xff, 0xff, 0xff),
		"echo":         fill(TypeEchoRequest, nil, 1),
	}
}

func TestAllocationIsBoundedByTheFrame(t *testing.T) {
	check := func(name string, frame []byte) {
		limit := uint64(allocPerByte*len(frame) + 4096)
		if got := allocated(frame); got > limit {
			t.Errorf("%s: a frame of %d bytes took %d bytes, limit %d", name, len(frame), got, limit)
		}
	}
	for name, frame := range densest() {
		check(name, frame)
		if _, _, err := Decode(frame); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %.1f bytes for a byte", name, float64(allocated(frame))/float64(len(frame)))
	}
	// Lengths inside that lie: every 16-bit word once as the largest number.
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, m := range samples() {
		frame := mustAppend(t, 1, m)
		for off := HeaderLen; off+2 <= len(frame); off += 1 + int(seed%2) {
			bad := append([]byte(nil), frame...)
			binary.BigEndian.PutUint16(bad[off:], 0xffff)
			check(name, bad)
		}
	}
}

func BenchmarkEncodePodBundle(b *testing.B) {
	mods := podFlows()
	buf := make([]byte, 0, 16<<10)
	b.ReportAllocs()
	for b.Loop() {
		out := buf[:0]
		ctl := BundleControl{BundleID: 7, Kind: BundleOpenRequest, Flags: BundleAtomic | BundleOrdered}
		out, err := Append(out, 1, &ctl)
		if err != nil {
			b.Fatal(err)
		}
		for i := range mods {
			out, err = Append(out, uint32(i+2), &BundleAdd{BundleID: 7, Flags: ctl.Flags, Inner: &mods[i]})
			if err != nil {
				b.Fatal(err)
			}
		}
		out, err = Append(out, 99, &BarrierRequest{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(out)))
	}
}

func BenchmarkBuildPodFlows(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if len(podFlows()) == 0 {
			b.Fatal("no flows")
		}
	}
}

func BenchmarkDecodePortStatus(b *testing.B) {
	frame := mustAppend(b, 1, &PortStatus{Reason: PortAdded, Desc: samplePort()})
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Decode(frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeFlowStats(b *testing.B) {
	frame := mustAppend(b, 1, &FlowStatsReply{Flows: sampleStats()})
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Decode(frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonical(b *testing.B) {
	mods := podFlows()
	b.ReportAllocs()
	for b.Loop() {
		for i := range mods {
			_ = mods[i].Canonical()
		}
	}
}
