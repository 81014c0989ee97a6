package ofp

import (
	"fmt"
	"slices"
)

const matchOXM = 1 // OFPMT_OXM

// Match is a list of fields that must all match; empty matches every packet.
// The order of the fields is kept on the wire and means nothing but that a
// field stands after those it needs. A field must not stand twice.
type Match []Field

// append appends the match with its header and padding (struct ofp_match).
func (m Match) append(b []byte) ([]byte, error) {
	start := len(b)
	b = put16(b, matchOXM)
	b = put16(b, 0)
	if dup, ok := m.duplicate(); ok {
		return nil, fmt.Errorf("match: %s stands twice", dup)
	}
	for i := range m {
		var err error
		if b, err = m[i].append(b); err != nil {
			return nil, fmt.Errorf("match field %d: %w", i, err)
		}
	}
	if err := setLen16(b, start, 2, "match"); err != nil {
		return nil, err
	}
	return putPad8(b, start), nil
}

// duplicate finds a field that stands twice.
func (m Match) duplicate() (FieldID, bool) {
	if len(m) > 32 {
		ids := make([]FieldID, len(m))
		for i := range m {
			ids[i] = m[i].id
		}
		slices.Sort(ids)
		for i := 1; i < len(ids); i++ {
			if ids[i] == ids[i-1] {
				return ids[i], true
			}
		}
		return 0, false
	}
	for i := range m {
		for j := range i {
			if m[i].id == m[j].id {
				return m[i].id, true
			}
		}
	}
	return 0, false
}

// decodeMatch reads a match with its header and padding. Fields that the
// package does not know are kept.
func decodeMatch(r *reader) (Match, error) {
	typ := r.u16("match type")
	n := int(r.u16("match length"))
	switch {
	case r.err != nil:
		return nil, r.err
	case typ != matchOXM:
		return nil, fmt.Errorf("match type: %d, only OXM (%d) is known", typ, matchOXM)
	case n < 4:
		return nil, fmt.Errorf("match length: %d, the least is 4", n)
	}
	c := r.cut(n-4, "match")
	r.skip(pad8(n)-n, "match padding")
	if r.err != nil {
		return nil, r.err
	}
	var m Match
	if count := countFields(c.b); count > 0 {
		m = make(Match, 0, count)
	}
	for c.more() {
		f, err := decodeField(&c)
		if err != nil {
			return nil, fmt.Errorf("match field %d: %w", len(m), err)
		}
		m = append(m, f)
	}
	if dup, ok := m.duplicate(); ok {
		return nil, fmt.Errorf("match: %s stands twice", dup)
	}
	return m, c.err
}

// countFields counts the OXM fields in b, as a size hint.
func countFields(b []byte) int {
	n := 0
	for len(b) >= 4 && len(b) >= 4+int(b[3]) {
		b = b[4+int(b[3]):]
		n++
	}
	return n
}
