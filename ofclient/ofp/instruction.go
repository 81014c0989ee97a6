package ofp

import (
	"errors"
	"fmt"
)

// Instruction is one instruction of a flow. The instruction types of this
// package implement it and no others. A flow without instructions drops.
type Instruction interface {
	appendInstruction(b []byte) ([]byte, error)
	appendText(b []byte) []byte
	// order is where the switch executes the instruction, whatever its place in the list.
	order() int
}

// Instruction types (enum ofp_instruction_type).
const (
	instGotoTable     = 1
	instWriteMetadata = 2
	instWriteActions  = 3
	instApplyActions  = 4
	instClearActions  = 5
)

// GotoTable sends the packet on to a later table.
type GotoTable uint8

// ApplyActions executes actions at once, in order.
type ApplyActions []Action

// WriteActions puts actions into the action set, executed at the end of the pipeline.
type WriteActions []Action

// ClearActions empties the action set.
type ClearActions struct{}

// WriteMetadata writes the bits of the metadata that Mask has.
type WriteMetadata struct{ Metadata, Mask uint64 }

// RawInstruction is an instruction that the package has no type for.
type RawInstruction struct {
	InstructionType uint16
	Body            []byte // what follows type and length
}

// Apply is the instruction list of a flow that executes actions and no more.
func Apply(actions ...Action) []Instruction { return []Instruction{ApplyActions(actions)} }

func (t GotoTable) appendInstruction(b []byte) ([]byte, error) {
	b = put16(put16(b, instGotoTable), 8)
	return append(b, byte(t), 0, 0, 0), nil
}

func (w WriteMetadata) appendInstruction(b []byte) ([]byte, error) {
	b = putZeros(put16(put16(b, instWriteMetadata), 24), 4)
	return put64(put64(b, w.Metadata), w.Mask), nil
}

func (ClearActions) appendInstruction(b []byte) ([]byte, error) {
	return putZeros(put16(put16(b, instClearActions), 8), 4), nil
}

func (a ApplyActions) appendInstruction(b []byte) ([]byte, error) {
	return appendActionInstruction(b, instApplyActions, a)
}

func (a WriteActions) appendInstruction(b []byte) ([]byte, error) {
	return appendActionInstruction(b, instWriteActions, a)
}

func appendActionInstruction(b []byte, typ uint16, actions []Action) ([]byte, error) {
	start := len(b)
	b = putZeros(put16(put16(b, typ), 0), 4)
	b, err := appendActions(b, actions)
	if err != nil {
		return nil, err
	}
	return b, setLen16(b, start, 2, "instruction")
}

func (i RawInstruction) appendInstruction(b []byte) ([]byte, error) {
	n := 4 + len(i.Body)
	if n < 8 || n%8 != 0 || n > MaxLen {
		return nil, fmt.Errorf("raw instruction: %d bytes, it must be a multiple of 8", n)
	}
	return append(put16(put16(b, i.InstructionType), uint16(n)), i.Body...), nil
}

func (RawInstruction) order() int { return 0 }
func (ApplyActions) order() int   { return 1 }
func (ClearActions) order() int   { return 2 }
func (WriteActions) order() int   { return 3 }
func (WriteMetadata) order() int  { return 4 }
func (GotoTable) order() int      { return 5 }

func appendInstructions(b []byte, list []Instruction) ([]byte, error) {
	for i, in := range list {
		if in == nil {
			return nil, fmt.Errorf("instruction %d: nil", i)
		}
		var err error
		if b, err = in.appendInstruction(b); err != nil {
			return nil, fmt.Errorf("instruction %d: %w", i, err)
		}
	}
	return b, nil
}

// decodeInstructions reads instructions to the end of r.
func decodeInstructions(r *reader) ([]Instruction, error) {
	var list []Instruction
	if n := r.countTLVs(2, 8); n > 0 {
		list = make([]Instruction, 0, n)
	}
	for r.more() {
		n, ok := r.peek16(2)
		if !ok || n < 8 || n%8 != 0 {
			return nil, fmt.Errorf("instruction %d length: %d, it must be a multiple of 8 and not 0", len(list), n)
		}
		c := r.cut(n, "instruction")
		if r.err != nil {
			return nil, r.err
		}
		in, err := decodeInstruction(c)
		if err != nil {
			return nil, fmt.Errorf("instruction %d: %w", len(list), err)
		}
		list = append(list, in)
	}
	return list, r.err
}

func decodeInstruction(r reader) (Instruction, error) {
	typ := r.u16("instruction type")
	r.skip(2, "instruction length")
	var in Instruction
	switch typ {
	case instGotoTable:
		in = GotoTable(r.u8("goto_table"))
		r.skip(3, "goto_table padding")
	case instWriteMetadata:
		r.skip(4, "write_metadata padding")
		in = WriteMetadata{Metadata: r.u64("metadata"), Mask: r.u64("metadata mask")}
	case instClearActions:
		r.skip(4, "clear_actions padding")
		in = ClearActions{}
	case instApplyActions, instWriteActions:
		r.skip(4, "instruction padding")
		actions, err := decodeActions(&r, false)
		if err != nil {
			return nil, err
		}
		if in = ApplyActions(actions); typ == instWriteActions {
			in = WriteActions(actions)
		}
	default:
		return RawInstruction{InstructionType: typ, Body: r.rest()}, r.err
	}
	if r.err == nil && len(r.b) > 0 {
		return nil, errors.New("bytes follow the instruction")
	}
	return in, r.err
}
