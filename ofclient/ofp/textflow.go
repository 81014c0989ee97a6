package ofp

import (
	"strconv"
	"time"
)

// String writes the flow as ovs-ofctl does, such as
//
//	cookie=0x10, table=0, priority=200,in_port=3,dl_src=0a:58:0a:0a:00:03 actions=goto_table:10
//
// with the command before it unless that is an add: "delete_strict table=0, ...".
// ovs-ofctl reads an add back; a flow with raw parts it does not.
func (m FlowMod) String() string {
	var b []byte
	if m.Command != FlowAdd {
		b = append(append(b, m.Command.String()...), ' ')
	}
	deletes := m.Command == FlowDelete || m.Command == FlowDeleteStrict
	if m.CookieMask != 0 || m.Cookie != 0 {
		b = appendHexUint(append(b, "cookie="...), m.Cookie)
		if m.CookieMask != 0 {
			b = append(b, '/')
			if m.CookieMask == ^uint64(0) {
				b = append(b, "-1"...)
			} else {
				b = appendHexUint(b, m.CookieMask)
			}
		}
		b = append(b, ", "...)
	}
	if !deletes || m.Table != TableAll {
		b = strconv.AppendUint(append(b, "table="...), uint64(m.Table), 10)
		b = append(b, ", "...)
	}
	b = appendTimeouts(b, m.IdleTimeout, m.HardTimeout)
	b = appendFlags(b, m.Flags)
	if m.Importance != 0 {
		b = strconv.AppendUint(append(b, "importance="...), uint64(m.Importance), 10)
		b = append(b, ", "...)
	}
	if deletes && anyIfZero(m.OutPort) != PortAny {
		b = append(appendPort(append(b, "out_port="...), m.OutPort), ", "...)
	}
	if deletes && anyIfZero(m.OutGroup) != PortAny {
		b = strconv.AppendUint(append(b, "out_group="...), uint64(m.OutGroup), 10)
		b = append(b, ", "...)
	}
	// A command without strict does not look at the priority.
	if m.Command == FlowAdd || m.Command == FlowModifyStrict || m.Command == FlowDeleteStrict {
		b = strconv.AppendUint(append(b, "priority="...), uint64(m.Priority), 10)
		b = append(b, ',')
	}
	b = m.Match.appendText(b)
	b = trimSeparator(b)
	if deletes {
		return string(b)
	}
	return string(appendInstructionsText(append(b, " actions="...), m.Instructions))
}

// String writes the flow as ovs-ofctl dump-flows does.
func (f FlowStats) String() string {
	b := strconv.AppendUint([]byte("cookie=0x"), f.Cookie, 16)
	b = append(b, ", "...)
	if f.Duration >= 0 {
		b = strconv.AppendFloat(append(b, "duration="...), float64(f.Duration.Milliseconds())/1000, 'f', 3, 64)
		b = append(b, "s, "...)
	}
	b = strconv.AppendUint(append(b, "table="...), uint64(f.Table), 10)
	b = append(b, ", "...)
	if f.Packets != UnknownCount {
		b = strconv.AppendUint(append(b, "n_packets="...), f.Packets, 10)
		b = append(b, ", "...)
	}
	if f.Bytes != UnknownCount {
		b = strconv.AppendUint(append(b, "n_bytes="...), f.Bytes, 10)
		b = append(b, ", "...)
	}
	b = appendTimeouts(b, f.IdleTimeout, f.HardTimeout)
	b = appendFlags(b, f.Flags)
	if f.Importance != 0 {
		b = strconv.AppendUint(append(b, "importance="...), uint64(f.Importance), 10)
		b = append(b, ", "...)
	}
	if f.IdleAge >= 0 {
		b = strconv.AppendInt(append(b, "idle_age="...), int64(f.IdleAge/time.Second), 10)
		b = append(b, ", "...)
	}
	b = strconv.AppendUint(append(b, "priority="...), uint64(f.Priority), 10)
	b = append(b, ',')
	b = trimSeparator(f.Match.appendText(b))
	return string(appendInstructionsText(append(b, " actions="...), f.Instructions))
}

func appendTimeouts(b []byte, idle, hard uint16) []byte {
	if idle != 0 {
		b = append(strconv.AppendUint(append(b, "idle_timeout="...), uint64(idle), 10), ", "...)
	}
	if hard != 0 {
		b = append(strconv.AppendUint(append(b, "hard_timeout="...), uint64(hard), 10), ", "...)
	}
	return b
}

func appendFlags(b []byte, flags uint16) []byte {
	names := [...]string{"send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"}
	for i, name := range names {
		if flags&(1<<i) != 0 {
			b = append(append(b, name...), ' ')
		}
	}
	return b
}

// trimSeparator removes what stands between two items when nothing followed.
func trimSeparator(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == ',' || b[len(b)-1] == ' ') {
		b = b[:len(b)-1]
	}
	return b
}

// appendInstructionsText writes instructions in the order of execution, drop for none.
func appendInstructionsText(b []byte, list []Instruction) []byte {
	start := len(b)
	for order := range 6 {
		for _, in := range list {
			if in == nil || in.order() != order {
				continue
			}
			if a, ok := in.(ApplyActions); ok && len(a) == 0 {
				continue
			}
			if len(b) > start {
				b = append(b, ',')
			}
			b = in.appendText(b)
		}
	}
	if len(b) == start {
		b = append(b, "drop"...)
	}
	return b
}
