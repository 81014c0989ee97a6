package ofp

import (
	"encoding/binary"
	"fmt"
)

// Action is one step of an action list. The action types of this package
// implement it and no others. No actions at all mean drop.
type Action interface {
	appendAction(b []byte) ([]byte, error)
	appendText(b []byte) []byte
}

// Action types (enum ofp_action_type).
const (
	actOutput       = 0
	actPushVLAN     = 17
	actPopVLAN      = 18
	actGroup        = 22
	actDecTTL       = 24
	actSetField     = 25
	actCopyField    = 28
	actExperimenter = 0xffff
)

// NoBuffer as Output.MaxLen sends the whole packet to the controller.
const NoBuffer = 0xffff

// EtherType8021Q is what PushVLAN pushes as a rule.
const EtherType8021Q = 0x8100

// Output sends the packet out of a port. MaxLen counts for PortController
// alone: how many bytes the controller gets. There 0 is written as NoBuffer,
// for a cut packet is never what one wants.
type Output struct {
	Port   uint32
	MaxLen uint16
}

// PushVLAN adds an empty VLAN tag; a SetField of VLANVID fills it.
type PushVLAN struct{ EtherType uint16 }

// PopVLAN removes the outermost VLAN tag.
type PopVLAN struct{}

// Group hands the packet to a group.
type Group struct{ ID uint32 }

// DecTTL takes one from the TTL or hop limit; the packet ends here when it gets 0.
type DecTTL struct{}

// SetField writes a field, or the bits of it that the mask has.
type SetField Field

// CopyField copies bits between fields (move in ovs-ofctl).
type CopyField struct {
	Src, Dst Subfield
	Bits     int // how many
}

// Subfield says where in a field CopyField, OutputReg or CT begins: Offset
// counts from the least significant bit.
type Subfield struct {
	Field  FieldID
	Offset int
}

// RawAction is an action that the package has no type for: its wire bytes,
// header and padding included. Decode makes it of what a switch may hold but
// this pipeline does not use, so that the flow around it still reads.
type RawAction struct{ Data []byte }

func (a Output) appendAction(b []byte) ([]byte, error) {
	if a.Port == PortController && a.MaxLen == 0 {
		a.MaxLen = NoBuffer
	}
	b = put16(put16(b, actOutput), 16)
	b = put16(put32(b, a.Port), a.MaxLen)
	return putZeros(b, 6), nil
}

func (a PushVLAN) appendAction(b []byte) ([]byte, error) {
	b = put16(put16(b, actPushVLAN), 8)
	return put16(put16(b, a.EtherType), 0), nil
}

func (PopVLAN) appendAction(b []byte) ([]byte, error) {
	return putZeros(put16(put16(b, actPopVLAN), 8), 4), nil
}

func (a Group) appendAction(b []byte) ([]byte, error) {
	return put32(put16(put16(b, actGroup), 8), a.ID), nil
}

func (DecTTL) appendAction(b []byte) ([]byte, error) {
	return putZeros(put16(put16(b, actDecTTL), 8), 4), nil
}

func (a SetField) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	b = put16(put16(b, actSetField), 0)
	f := Field(a)
	b, err := f.append(b)
	if err != nil {
		return nil, fmt.Errorf("set_field: %w", err)
	}
	b = putPad8(b, start)
	return b, setLen16(b, start, 2, "set_field")
}

func (a CopyField) appendAction(b []byte) ([]byte, error) {
	for _, s := range [...]Subfield{a.Src, a.Dst} {
		if err := s.check(a.Bits); err != nil {
			return nil, fmt.Errorf("move: %w", err)
		}
	}
	start := len(b)
	b = put16(put16(b, actCopyField), 0)
	b = put16(b, uint16(a.Bits))
	b = put16(b, uint16(a.Src.Offset))
	b = put16(b, uint16(a.Dst.Offset))
	b = putZeros(b, 2)
	for _, s := range [...]Subfield{a.Src, a.Dst} {
		var err error
		if b, err = s.Field.appendHeader(b, false); err != nil {
			return nil, fmt.Errorf("move: %w", err)
		}
	}
	b = putPad8(b, start)
	return b, setLen16(b, start, 2, "move")
}

// check refuses a range that does not lie inside its field.
func (s Subfield) check(bits int) error {
	width := s.Field.width()
	if s.Field == 0 || bits < 1 || s.Offset < 0 || s.Offset+bits > width {
		return fmt.Errorf("%s: bits %d to %d of a field that has %d", s.Field, s.Offset, s.Offset+bits-1, width)
	}
	return nil
}

// width is the number of bits that a field's value can have.
func (id FieldID) width() int {
	if info, ok := id.info(); ok {
		return info.bits
	}
	return 8 * id.Len()
}

func (a RawAction) appendAction(b []byte) ([]byte, error) {
	n := len(a.Data)
	if n < 8 || n%8 != 0 || n > MaxLen || int(binary.BigEndian.Uint16(a.Data[2:])) != n {
		return nil, fmt.Errorf("raw action: %d bytes do not make an action of their own length field", n)
	}
	return append(b, a.Data...), nil
}

func appendActions(b []byte, actions []Action) ([]byte, error) {
	for i, a := range actions {
		if a == nil {
			return nil, fmt.Errorf("action %d: nil", i)
		}
		var err error
		if b, err = a.appendAction(b); err != nil {
			return nil, fmt.Errorf("action %d: %w", i, err)
		}
	}
	return b, nil
}
