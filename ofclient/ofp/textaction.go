package ofp

import (
	"encoding/hex"
	"fmt"
	"strconv"
)

func (a Output) appendText(b []byte) []byte {
	switch {
	case a.Port == PortController:
		maxLen := a.MaxLen
		if maxLen == 0 {
			maxLen = NoBuffer
		}
		return strconv.AppendUint(append(b, "CONTROLLER:"...), uint64(maxLen), 10)
	case a.Port >= PortInPort:
		return appendPort(b, a.Port)
	}
	return appendPort(append(b, "output:"...), a.Port)
}

func (a OutputReg) appendText(b []byte) []byte {
	return a.Src.appendText(append(b, "output:"...), a.Bits)
}

func (a PushVLAN) appendText(b []byte) []byte { return fmt.Appendf(b, "push_vlan:%#04x", a.EtherType) }
func (PopVLAN) appendText(b []byte) []byte    { return append(b, "pop_vlan"...) }
func (a Group) appendText(b []byte) []byte    { return fmt.Appendf(b, "group:%d", a.ID) }
func (DecTTL) appendText(b []byte) []byte     { return append(b, "dec_ttl"...) }
func (CTClear) appendText(b []byte) []byte    { return append(b, "ct_clear"...) }

func (a SetField) appendText(b []byte) []byte {
	f := Field(a)
	info, _ := f.id.info()
	b = append(b, "set_field:"...)
	if f.id == 0 {
		return append(b, f.long...)
	}
	b = f.appendValueText(b, info)
	b = append(b, "->"...)
	return append(b, f.id.String()...)
}

func (a CopyField) appendText(b []byte) []byte {
	b = a.Src.appendText(append(b, "move:"...), a.Bits)
	return a.Dst.appendText(append(b, "->"...), a.Bits)
}

// appendText appends NAME[], NAME[3] or NAME[0..15].
func (s Subfield) appendText(b []byte, bits int) []byte {
	info, ok := s.Field.info()
	if ok && info.nxm != "" {
		b = append(b, info.nxm...)
	} else {
		b = append(b, s.Field.String()...)
	}
	b = append(b, '[')
	if s.Offset != 0 || bits != s.Field.width() {
		b = strconv.AppendInt(b, int64(s.Offset), 10)
		if bits != 1 {
			b = strconv.AppendInt(append(b, ".."...), int64(s.Offset+bits-1), 10)
		}
	}
	return append(b, ']')
}

func (a Resubmit) appendText(b []byte) []byte {
	b = append(b, "resubmit("...)
	if a.InPort != 0 && a.InPort != PortInPort {
		b = appendPort(b, a.InPort)
	}
	b = append(b, ',')
	if a.Table != TableNone {
		b = strconv.AppendUint(b, uint64(a.Table), 10)
	}
	return append(b, ')')
}

func (a CT) appendText(b []byte) []byte {
	b = append(b, "ct("...)
	start := len(b)
	item := func(s string) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, s...)
	}
	if a.Commit {
		item("commit")
	}
	if a.Force {
		item("force")
	}
	if a.Table != TableNone {
		item("table=")
		b = strconv.AppendUint(b, uint64(a.Table), 10)
	}
	if a.ZoneSrc.Field != 0 {
		item("zone=")
		b = a.ZoneSrc.appendText(b, 16)
	} else if a.Zone != 0 {
		item("zone=")
		b = strconv.AppendUint(b, uint64(a.Zone), 10)
	}
	if len(a.Exec) > 0 {
		item("exec(")
		b = append(appendActionsText(b, a.Exec), ')')
	}
	if a.ALG != 0 {
		item("alg=")
		switch a.ALG {
		case 21:
			b = append(b, "ftp"...)
		case 69:
			b = append(b, "tftp"...)
		default:
			b = strconv.AppendUint(b, uint64(a.ALG), 10)
		}
	}
	return append(b, ')')
}

func (a RawAction) appendText(b []byte) []byte {
	return hex.AppendEncode(append(b, "raw_action:"...), a.Data)
}

func appendActionsText(b []byte, list []Action) []byte {
	for i, a := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if a == nil {
			b = append(b, "nil"...)
			continue
		}
		b = a.appendText(b)
	}
	return b
}

func (a ApplyActions) appendText(b []byte) []byte { return appendActionsText(b, a) }

func (a WriteActions) appendText(b []byte) []byte {
	return append(appendActionsText(append(b, "write_actions("...), a), ')')
}

func (ClearActions) appendText(b []byte) []byte { return append(b, "clear_actions"...) }

func (t GotoTable) appendText(b []byte) []byte {
	return strconv.AppendUint(append(b, "goto_table:"...), uint64(t), 10)
}

func (w WriteMetadata) appendText(b []byte) []byte {
	b = appendHexUint(append(b, "write_metadata:"...), w.Metadata)
	if w.Mask != ^uint64(0) {
		b = appendHexUint(append(b, '/'), w.Mask)
	}
	return b
}

func (i RawInstruction) appendText(b []byte) []byte {
	return fmt.Appendf(b, "raw_instruction:%d:%x", i.InstructionType, i.Body)
}
