package ofp

import (
	"errors"
	"fmt"
)

// maxInline is the widest value that a Field holds in place: an IPv6 address or
// a conntrack label. Wider ones (tunnel metadata) are kept in a string.
const maxInline = 16

// Field is one field of a match, or what a set-field action writes: the field,
// its value and, when masked, which bits of it count. Fields are comparable and
// can be map keys. The zero Field, and one made by a constructor from a value
// that has no wire form, is refused by Append with an error that says why.
type Field struct {
	id     FieldID
	masked bool
	value  [maxInline]byte
	mask   [maxInline]byte
	long   string // value and mask of a wide field; the error text when id is 0
}

// NewField makes a field from raw big-endian bytes, for fields without a
// constructor of their own. mask is nil for an exact match, else as long as
// value; bits of value outside mask are cleared, as OVS demands. The width must
// be id.Len().
func NewField(id FieldID, value, mask []byte) Field {
	switch {
	case id == 0:
		return badField("no such field")
	case len(value) != id.Len() || mask != nil && len(mask) != len(value):
		return badField(fmt.Sprintf("%s: value of %d bytes and mask of %d, it has %d", id, len(value), len(mask), id.Len()))
	}
	f := Field{id: id, masked: mask != nil}
	if len(value) > maxInline {
		b := append([]byte(nil), value...)
		for i := range mask {
			b[i] &= mask[i]
		}
		f.long = string(append(b, mask...))
		return f
	}
	copy(f.value[:], value)
	copy(f.mask[:], mask)
	for i := range mask {
		f.value[i] &= mask[i]
	}
	return f
}

func badField(why string) Field { return Field{long: why} }

// ID names the field; 0 in a Field that is refused by Append.
func (f Field) ID() FieldID { return f.id }

// Masked reports whether only some bits count.
func (f Field) Masked() bool { return f.masked }

// Value is a copy of the value, big-endian, ID().Len() bytes.
func (f Field) Value() []byte {
	n := f.id.Len()
	if n > maxInline {
		return []byte(f.long[:n])
	}
	return append([]byte(nil), f.value[:n]...)
}

// Mask is a copy of the mask; nil when the field is not masked.
func (f Field) Mask() []byte {
	n := f.id.Len()
	switch {
	case !f.masked:
		return nil
	case n > maxInline:
		return []byte(f.long[n:])
	}
	return append([]byte(nil), f.mask[:n]...)
}

// append appends header, value and mask.
func (f *Field) append(b []byte) ([]byte, error) {
	if f.id == 0 {
		if f.long != "" {
			return nil, errors.New(f.long)
		}
		return nil, errors.New("the zero Field names no field")
	}
	b, err := f.id.appendHeader(b, f.masked)
	if err != nil {
		return nil, err
	}
	n := f.id.Len()
	if n > maxInline {
		return append(b, f.long...), nil
	}
	b = append(b, f.value[:n]...)
	if f.masked {
		b = append(b, f.mask[:n]...)
	}
	return b, nil
}

// decodeField reads header, value and mask.
func decodeField(r *reader) (Field, error) {
	id, masked, payload := decodeFieldID(r)
	if r.err != nil {
		return Field{}, r.err
	}
	b := r.take(payload, "value")
	if r.err != nil {
		return Field{}, fmt.Errorf("%s: %w", id, r.err)
	}
	f := Field{id: id, masked: masked}
	n := id.Len()
	if masked {
		for i := range n {
			if b[i]&^b[n+i] != 0 {
				return Field{}, fmt.Errorf("%s: value has bits outside its mask", id)
			}
		}
	}
	if n > maxInline {
		f.long = string(b)
		return f, nil
	}
	copy(f.value[:], b[:n])
	if masked {
		copy(f.mask[:], b[n:])
	}
	return f, nil
}
