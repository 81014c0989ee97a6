package ofp

import "fmt"

// FlowCommand says what a FlowMod does.
type FlowCommand uint8

// The commands of a FlowMod. The strict ones work on the flow of exactly this
// match and priority, the others on all flows that the match covers.
const (
	FlowAdd          FlowCommand = 0 // replaces a flow of the same table, match and priority in silence
	FlowModify       FlowCommand = 1
	FlowModifyStrict FlowCommand = 2
	FlowDelete       FlowCommand = 3
	FlowDeleteStrict FlowCommand = 4
)

// String returns the word that ovs-ofctl takes before a flow in a file.
func (c FlowCommand) String() string {
	names := [...]string{"add", "modify", "modify_strict", "delete", "delete_strict"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("command %d", uint8(c))
}

// TableAll in a delete or a statistics request stands for every table.
const TableAll = 0xff

// Flags of a FlowMod. All but CheckOverlap and ResetCounts stay with the flow.
const (
	FlagSendFlowRemoved uint16 = 1 << 0
	FlagCheckOverlap    uint16 = 1 << 1
	FlagResetCounts     uint16 = 1 << 2
	FlagNoPacketCounts  uint16 = 1 << 3
	FlagNoByteCounts    uint16 = 1 << 4

	keptFlags = FlagSendFlowRemoved | FlagNoPacketCounts | FlagNoByteCounts
)

// FlowMod adds, changes or deletes flows.
type FlowMod struct {
	Command      FlowCommand
	Table        uint8
	Priority     uint16
	Cookie       uint64
	CookieMask   uint64 // with modify and delete: the cookie bits that must agree; 0 for any cookie
	IdleTimeout  uint16 // seconds; 0 for none
	HardTimeout  uint16 // seconds; 0 for none
	Flags        uint16
	Importance   uint16
	OutPort      uint32 // with delete: only flows with this output; 0 and PortAny for any
	OutGroup     uint32 // with delete: only flows with this group; 0 and PortAny for any
	Match        Match
	Instructions []Instruction
}

const noBufferID = 0xffffffff

// Type returns TypeFlowMod.
func (*FlowMod) Type() Type { return TypeFlowMod }

func (m *FlowMod) appendBody(b []byte) ([]byte, error) {
	b = put64(b, m.Cookie)
	b = put64(b, m.CookieMask)
	b = append(b, m.Table, byte(m.Command))
	b = put16(b, m.IdleTimeout)
	b = put16(b, m.HardTimeout)
	b = put16(b, m.Priority)
	b = put32(b, noBufferID)
	b = put32(b, anyIfZero(m.OutPort))
	b = put32(b, anyIfZero(m.OutGroup))
	b = put16(b, m.Flags)
	b = put16(b, m.Importance)
	b, err := m.Match.append(b)
	if err != nil {
		return nil, err
	}
	return appendInstructions(b, m.Instructions)
}

func (m *FlowMod) decodeBody(_ Header, r *reader) (err error) {
	m.Cookie = r.u64("cookie")
	m.CookieMask = r.u64("cookie_mask")
	m.Table = r.u8("table_id")
	m.Command = FlowCommand(r.u8("command"))
	m.IdleTimeout = r.u16("idle_timeout")
	m.HardTimeout = r.u16("hard_timeout")
	m.Priority = r.u16("priority")
	buffer := r.u32("buffer_id")
	m.OutPort = zeroIfAny(r.u32("out_port"))
	m.OutGroup = zeroIfAny(r.u32("out_group"))
	m.Flags = r.u16("flags")
	m.Importance = r.u16("importance")
	if r.err != nil {
		return r.err
	}
	if buffer != noBufferID {
		return fmt.Errorf("buffer_id: %#x, buffered packets are not supported", buffer)
	}
	if m.Match, err = decodeMatch(r); err != nil {
		return err
	}
	m.Instructions, err = decodeInstructions(r)
	return err
}

// Zero stands for ANY in this package, so that the zero FlowMod restricts
// nothing. Port 0 does not exist; group 0 cannot be asked for.
func anyIfZero(v uint32) uint32 {
	if v == 0 {
		return PortAny
	}
	return v
}

func zeroIfAny(v uint32) uint32 {
	if v == PortAny {
		return 0
	}
	return v
}
