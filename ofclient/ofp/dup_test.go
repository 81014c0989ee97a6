package ofp

import "testing"

// A long match is searched for duplicates in another way than a short one.
func TestDuplicateField(t *testing.T) {
	for _, n := range []int{2, 32, 33, 200} {
		var m Match
		for i := range n {
			m = append(m, NewField(FieldID(0x2000+i)<<48|1<<32, []byte{1}, nil))
		}
		if id, ok := m.duplicate(); ok {
			t.Errorf("%d fields: %s stands once", n, id)
		}
		m[n-1] = m[0]
		if id, ok := m.duplicate(); !ok || id != m[0].id {
			t.Errorf("%d fields: found %s, %t; want %s", n, id, ok, m[0].id)
		}
	}
}
