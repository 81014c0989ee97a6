package ofp

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Flow statistics in OpenFlow 1.5 are a list of OXS fields of class 0x8002.
const (
	oxsBasic       = 0x8002
	oxsDuration    = 0
	oxsIdleTime    = 1
	oxsPacketCount = 4
	oxsByteCount   = 5
)

// appendCounters writes what is known.
func (f *FlowStats) appendCounters(b []byte) []byte {
	start := len(b)
	b = putZeros(b, 4)
	put := func(field byte, v uint64) {
		b = put64(append(put16(b, oxsBasic), field<<1, 8), v)
	}
	if f.Duration >= 0 {
		put(oxsDuration, oxsTime(f.Duration))
	}
	if f.IdleAge >= 0 {
		put(oxsIdleTime, oxsTime(f.IdleAge))
	}
	if f.Packets != UnknownCount {
		put(oxsPacketCount, f.Packets)
	}
	if f.Bytes != UnknownCount {
		put(oxsByteCount, f.Bytes)
	}
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return putPad8(b, start)
}

// decodeCounters skips the fields that it does not know.
func (f *FlowStats) decodeCounters(r *reader) error {
	f.Duration, f.IdleAge, f.Packets, f.Bytes = -1, -1, UnknownCount, UnknownCount
	r.skip(2, "stats reserved")
	n := int(r.u16("stats length"))
	if r.err == nil && n < 4 {
		return fmt.Errorf("stats length: %d, the least is 4", n)
	}
	c := r.cut(n-4, "stats")
	r.skip(pad8(n)-n, "stats padding")
	if r.err != nil {
		return r.err
	}
	for c.more() {
		class := c.u16("oxs_class")
		field := c.u8("oxs_field") >> 1
		v := c.cut(int(c.u8("oxs_length")), "oxs value")
		if class != oxsBasic || c.err != nil {
			continue
		}
		switch field {
		case oxsDuration:
			f.Duration = goTime(v.u64("duration"))
		case oxsIdleTime:
			f.IdleAge = goTime(v.u64("idle_time"))
		case oxsPacketCount:
			f.Packets = v.u64("packet_count")
		case oxsByteCount:
			f.Bytes = v.u64("byte_count")
		}
		if v.err != nil {
			return v.err
		}
	}
	return c.err
}

// OXS times are 32 bits of seconds and 32 bits of nanoseconds.
func oxsTime(d time.Duration) uint64 {
	return uint64(d/time.Second)<<32 | uint64(d%time.Second)
}

func goTime(v uint64) time.Duration {
	return time.Duration(v>>32)*time.Second + min(time.Duration(uint32(v)), time.Second-1)
}
