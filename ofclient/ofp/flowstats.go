package ofp

import (
	"errors"
	"fmt"
	"time"
)

// FlowStatsRequest asks for the flows that the match covers.
type FlowStatsRequest struct {
	Table      uint8  // TableAll for every table; 0 is table 0
	OutPort    uint32 // only flows with this output; 0 and PortAny for any
	OutGroup   uint32 // only flows with this group; 0 and PortAny for any
	Cookie     uint64
	CookieMask uint64 // the cookie bits that must agree; 0 for any cookie
	Match      Match
}

// FlowStatsReply is one part of the answer.
type FlowStatsReply struct {
	Flows []FlowStats
	More  bool // another part with the same xid follows
}

// FlowStats is one flow as the switch holds it. OVS gives match fields back in
// an order and a form of its own; compare with Canonical.
type FlowStats struct {
	Table        uint8
	Priority     uint16
	IdleTimeout  uint16 // seconds; 0 for none
	HardTimeout  uint16 // seconds; 0 for none
	Flags        uint16
	Importance   uint16
	Cookie       uint64
	Match        Match
	Duration     time.Duration // since the flow was added; negative when not told
	IdleAge      time.Duration // since a packet hit it; negative when not told
	Packets      uint64        // UnknownCount when not told
	Bytes        uint64        // UnknownCount when not told
	Instructions []Instruction
}

// UnknownCount stands for a counter that the switch did not send.
const UnknownCount = ^uint64(0)

const flowDescLen = 24

// Type returns TypeMultipartRequest.
func (*FlowStatsRequest) Type() Type { return TypeMultipartRequest }

// Type returns TypeMultipartReply.
func (*FlowStatsReply) Type() Type { return TypeMultipartReply }

func (m *FlowStatsRequest) appendBody(b []byte) ([]byte, error) {
	b = putMultipart(b, mpFlowDesc, false)
	b = append(b, m.Table, 0, 0, 0)
	b = put32(b, anyIfZero(m.OutPort))
	b = put32(b, anyIfZero(m.OutGroup))
	b = putZeros(b, 4)
	b = put64(b, m.Cookie)
	b = put64(b, m.CookieMask)
	return m.Match.append(b)
}

func (m *FlowStatsRequest) decodeBody(_ Header, r *reader) (err error) {
	decodeMultipart(r)
	m.Table = r.u8("table_id")
	r.skip(3, "table_id padding")
	m.OutPort = zeroIfAny(r.u32("out_port"))
	m.OutGroup = zeroIfAny(r.u32("out_group"))
	r.skip(4, "out_group padding")
	m.Cookie = r.u64("cookie")
	m.CookieMask = r.u64("cookie_mask")
	if r.err != nil {
		return r.err
	}
	m.Match, err = decodeMatch(r)
	return err
}

func (m *FlowStatsReply) appendBody(b []byte) ([]byte, error) {
	b = putMultipart(b, mpFlowDesc, m.More)
	for i := range m.Flows {
		var err error
		if b, err = m.Flows[i].append(b); err != nil {
			return nil, fmt.Errorf("flow %d of the list: %w", i, err)
		}
	}
	return b, nil
}

func (m *FlowStatsReply) decodeBody(_ Header, r *reader) error {
	m.More = decodeMultipart(r)
	if n := r.countTLVs(0, flowDescLen); n > 0 {
		m.Flows = make([]FlowStats, 0, n)
	}
	for r.more() {
		f, err := decodeFlowStats(r)
		if err != nil {
			return fmt.Errorf("flow %d of the list: %w", len(m.Flows), err)
		}
		m.Flows = append(m.Flows, f)
	}
	return r.err
}

func (f *FlowStats) append(b []byte) ([]byte, error) {
	start := len(b)
	b = putZeros(b, 4)
	b = append(b, f.Table, 0)
	b = put16(b, f.Priority)
	b = put16(b, f.IdleTimeout)
	b = put16(b, f.HardTimeout)
	b = put16(b, f.Flags)
	b = put16(b, f.Importance)
	b = put64(b, f.Cookie)
	b, err := f.Match.append(b)
	if err != nil {
		return nil, err
	}
	b = f.appendCounters(b)
	if b, err = appendInstructions(b, f.Instructions); err != nil {
		return nil, err
	}
	return b, setLen16(b, start, 0, "flow")
}

func decodeFlowStats(r *reader) (FlowStats, error) {
	n, ok := r.peek16(0)
	if ok && n < flowDescLen {
		return FlowStats{}, fmt.Errorf("length: %d, the least is %d", n, flowDescLen)
	}
	if !ok {
		return FlowStats{}, errors.New("length: it is cut off")
	}
	c := r.cut(n, "flow")
	c.skip(4, "length and padding")
	f := FlowStats{Table: c.u8("table_id")}
	c.skip(1, "table_id padding")
	f.Priority = c.u16("priority")
	f.IdleTimeout = c.u16("idle_timeout")
	f.HardTimeout = c.u16("hard_timeout")
	f.Flags = c.u16("flags")
	f.Importance = c.u16("importance")
	f.Cookie = c.u64("cookie")
	if c.err != nil {
		return FlowStats{}, c.err
	}
	var err error
	if f.Match, err = decodeMatch(&c); err != nil {
		return FlowStats{}, err
	}
	if err = f.decodeCounters(&c); err != nil {
		return FlowStats{}, err
	}
	if f.Instructions, err = decodeInstructions(&c); err != nil {
		return FlowStats{}, err
	}
	return f, nil
}
