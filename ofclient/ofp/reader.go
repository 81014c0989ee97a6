package ofp

import (
	"encoding/binary"
	"fmt"
)

// reader is a cursor over the bytes of one structure. The first failure sticks
// and names the field; after it every read gives zero. A structure of declared
// length is cut off with cut and read from a cursor of its own, so that nothing
// inside can reach beyond it.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int, field string) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || len(r.b) < n {
		r.err = fmt.Errorf("%s: needs %d bytes, %d are left", field, n, len(r.b))
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// cut takes the next n bytes as a structure of their own.
func (r *reader) cut(n int, field string) reader {
	b := r.take(n, field)
	return reader{b: b, err: r.err}
}

func (r *reader) skip(n int, field string) { r.take(n, field) }

func (r *reader) u8(field string) uint8 {
	b := r.take(1, field)
	if b == nil {
		return 0
	}
	return b[0]
}

func (r *reader) u16(field string) uint16 {
	b := r.take(2, field)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint16(b)
}

func (r *reader) u32(field string) uint32 {
	b := r.take(4, field)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (r *reader) u64(field string) uint64 {
	b := r.take(8, field)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func (r *reader) mac(field string) (mac [6]byte) {
	copy(mac[:], r.take(6, field))
	return mac
}

// more reports whether there is something left to read and nothing went wrong.
func (r *reader) more() bool { return r.err == nil && len(r.b) > 0 }

// end makes leftover bytes an error.
func (r *reader) end(what string) error {
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes follow the %s", len(r.b), what)
	}
	return r.err
}

// rest copies what is left; nil when nothing is.
func (r *reader) rest() []byte {
	if len(r.b) == 0 {
		return nil
	}
	b := append([]byte(nil), r.b...)
	r.b = nil
	return b
}

// peek16 reads 16 bits at an offset without moving. ok is false when they are not there.
func (r *reader) peek16(off int) (v int, ok bool) {
	if r.err != nil || off+2 > len(r.b) {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(r.b[off:])), true
}

// countTLVs counts the structures ahead whose 16-bit length stands at offset
// lenOff, so that the slice for them can be made in one piece. The count is a
// size hint; the real reading judges the lengths.
func (r *reader) countTLVs(lenOff, least int) int {
	n := 0
	for c := *r; ; n++ {
		l, ok := c.peek16(lenOff)
		if !ok || l < least || l > len(c.b) {
			return n
		}
		c.b = c.b[l:]
	}
}

func pad8(n int) int { return (n + 7) &^ 7 }
