package ofp

import (
	"bytes"
	"slices"
)

// FlowKey identifies a flow on a switch: no two flows of one bridge have the
// same. It is comparable. Match holds the encoded canonical match, not text,
// so different matches cannot share a key.
type FlowKey struct {
	Table    uint8
	Priority uint16
	Match    string
}

// CanonicalFlow is a flow in a form in which what was sent and what Open
// vSwitch gives back compare equal with ==: fields in one order, aliases
// resolved, registers apart, full masks dropped, instructions in the order of
// execution, flags that do not stay left out. Set Cookie to zero on both sides
// to compare flows of different rounds.
type CanonicalFlow struct {
	FlowKey
	Cookie                   uint64
	IdleTimeout, HardTimeout uint16
	Flags                    uint16
	Importance               uint16
	Instructions             string // encoded
}

// Key identifies the flow that an add or a strict command is about.
func (m *FlowMod) Key() FlowKey { return FlowKey{m.Table, m.Priority, m.Match.Key()} }

// Key identifies the flow.
func (f *FlowStats) Key() FlowKey { return FlowKey{f.Table, f.Priority, f.Match.Key()} }

// Canonical is the flow as it stands on a switch after this add.
func (m *FlowMod) Canonical() CanonicalFlow {
	return CanonicalFlow{
		FlowKey: m.Key(), Cookie: m.Cookie, IdleTimeout: m.IdleTimeout, HardTimeout: m.HardTimeout,
		Flags: m.Flags & keptFlags, Importance: m.Importance, Instructions: canonicalInstructions(m.Instructions),
	}
}

// Canonical is the flow without its counters.
func (f *FlowStats) Canonical() CanonicalFlow {
	return CanonicalFlow{
		FlowKey: f.Key(), Cookie: f.Cookie, IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout,
		Flags: f.Flags & keptFlags, Importance: f.Importance, Instructions: canonicalInstructions(f.Instructions),
	}
}

// Key is the canonical match, encoded: equal for matches that mean the same,
// whatever the order and spelling of their fields, and different for all others.
func (m Match) Key() string {
	var b []byte
	for _, f := range m.canonical() {
		b = f.appendKey(b)
	}
	return string(b)
}

// appendKey encodes the field; unlike append it never fails, so that a field
// without a wire form has a key of its own too.
func (f *Field) appendKey(b []byte) []byte {
	if enc, err := f.append(b); err == nil {
		return enc
	}
	b = put64(b, uint64(f.id))
	return append(b, f.long...)
}

// canonical resolves every field and sorts them.
func (m Match) canonical() []Field {
	out := make([]Field, 0, len(m)+1)
	for _, f := range m {
		f = f.canonical()
		switch {
		case f.masked && f.maskIs(0):
			continue // matches everything
		case f.id == FieldPacketType && f.value == [maxInline]byte{}:
			continue // Ethernet: OVS adds it to a match that has no Ethernet field
		case f.id.class() == classPacketRegs && f.id.num() < NumRegs/2:
			out = f.appendRegs(out)
			continue
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Field) int {
		if a.id != b.id {
			if a.id < b.id {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.value[:], b.value[:])
	})
	return out
}

// canonical gives the field its OpenFlow 1.5 name and drops a mask that covers all bits.
func (f Field) canonical() Field {
	info, ok := f.id.info()
	if !ok {
		return f
	}
	f.id = info.canon
	f = f.dropFullMask(info.bits)
	if f.id == FieldVLANTCI {
		if f = f.tciAsVID(); f.id == FieldVLANVID {
			f = f.dropFullMask(basicFields[FieldVLANVID.num()].bits)
		}
	}
	return f
}

// dropFullMask makes the field exact when its mask has all of its bits.
func (f Field) dropFullMask(bits int) Field {
	if f.masked && f.maskIs(bits) {
		f.masked = false
		f.mask = [maxInline]byte{}
	}
	return f
}

// tciAsVID turns a match on VID and presence into the field that OVS gives
// back. One that looks at the priority bits stays as it is.
func (f Field) tciAsVID() Field {
	if !f.masked {
		if f.value != [maxInline]byte{} {
			return f
		}
		// tci=0 means no tag.
		return VLANNone()
	}
	if f.mask[0]&0xe0 != 0 {
		return f
	}
	f.id = FieldVLANVID
	return f
}

// maskIs reports whether the mask is ones in the low bits and zeros above.
func (f *Field) maskIs(bits int) bool {
	n := f.id.Len()
	mask := f.Mask()
	for i := range n {
		want := byte(0)
		switch low := bits - 8*(n-1-i); {
		case low >= 8:
			want = 0xff
		case low > 0:
			want = 1<<low - 1
		}
		if mask[i] != want {
			// Bits that the field does not have may be in the mask.
			if bits == 0 || mask[i]&want != want {
				return false
			}
		}
	}
	return true
}

// appendRegs takes a 64-bit register match apart, halves that match nothing left out.
func (f Field) appendRegs(out []Field) []Field {
	for half := range 2 {
		reg := Field{id: RegID(2*f.id.num() + half), masked: f.masked}
		copy(reg.value[:4], f.value[4*half:])
		copy(reg.mask[:4], f.mask[4*half:])
		if f.masked && reg.maskIs(0) {
			continue
		}
		out = append(out, reg.canonical())
	}
	return out
}

// canonicalInstructions encodes instructions in the order of execution. An
// empty action list is no instruction. A list that cannot be encoded has the
// error for its text: it equals nothing that a switch can hold.
func canonicalInstructions(list []Instruction) string {
	out := make([]Instruction, 0, len(list))
	for _, in := range list {
		switch v := in.(type) {
		case nil:
			continue
		case ApplyActions:
			if len(v) == 0 {
				continue
			}
			in = ApplyActions(canonicalActions(v))
		case WriteActions:
			in = WriteActions(canonicalActions(v))
		}
		out = append(out, in)
	}
	slices.SortStableFunc(out, func(a, b Instruction) int { return a.order() - b.order() })
	b, err := appendInstructions(nil, out)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

func canonicalActions(list []Action) []Action {
	out := make([]Action, len(list))
	for i, a := range list {
		switch v := a.(type) {
		case Output:
			if v.Port != PortController {
				v.MaxLen = 0
			}
			a = v
		case OutputReg:
			v.Src.Field = v.Src.Field.canonical()
			a = v
		case SetField:
			a = SetField(Field(v).canonical())
		case CopyField:
			v.Src.Field = v.Src.Field.canonical()
			v.Dst.Field = v.Dst.Field.canonical()
			a = v
		case CT:
			v.ZoneSrc.Field = v.ZoneSrc.Field.canonical()
			v.Exec = canonicalActions(v.Exec)
			a = v
		}
		out[i] = a
	}
	return out
}

func (id FieldID) canonical() FieldID {
	if info, ok := id.info(); ok {
		return info.canon
	}
	return id
}
