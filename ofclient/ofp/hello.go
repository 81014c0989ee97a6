package ofp

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

const helloVersionBitmap = 1 // OFPHET_VERSIONBITMAP

// Hello starts a session: each side says which versions it can speak.
type Hello struct {
	// Versions are wire version numbers, ascending when decoded. A peer that
	// sends no bitmap can speak every version up to the one in its header.
	// Empty is written as Version alone.
	Versions []uint8
}

// Type returns TypeHello.
func (*Hello) Type() Type { return TypeHello }

// Supports reports whether the sender can speak version v.
func (m *Hello) Supports(v uint8) bool { return slices.Contains(m.Versions, v) }

// headerVersion is the highest version, as the specification asks.
func (m *Hello) headerVersion() uint8 { return slices.Max(m.offered()) }

func (m *Hello) offered() []uint8 {
	if len(m.Versions) == 0 {
		return []uint8{Version}
	}
	return m.Versions
}

func (m *Hello) appendBody(b []byte) ([]byte, error) {
	words := make([]uint32, int(m.headerVersion())/32+1)
	for _, v := range m.offered() {
		words[v/32] |= 1 << (v % 32)
	}
	start := len(b)
	b = put16(b, helloVersionBitmap)
	b = put16(b, uint16(4+4*len(words)))
	for _, w := range words {
		b = put32(b, w)
	}
	return putPad8(b, start), nil
}

func (m *Hello) decodeBody(h Header, r *reader) error {
	var seen [256]bool
	found := false
	for r.more() {
		typ := r.u16("hello element type")
		n := int(r.u16("hello element length"))
		if r.err == nil && n < 4 {
			return fmt.Errorf("hello element length: %d, the least is 4", n)
		}
		el := r.cut(n-4, "hello element")
		// The padding of the last element may be missing: OVS sends none.
		if pad := pad8(n) - n; r.err == nil {
			r.skip(min(pad, len(r.b)), "hello element padding")
		}
		if typ != helloVersionBitmap {
			continue
		}
		found = true
		for base := 0; el.more(); base += 32 {
			w := el.u32("version bitmap")
			for ; w != 0 && base < len(seen); w &= w - 1 {
				seen[base+bits.TrailingZeros32(w)] = true
			}
		}
		if el.err != nil {
			return el.err
		}
	}
	if r.err != nil {
		return r.err
	}
	if !found {
		for v := 1; v <= int(h.Version); v++ {
			seen[v] = true
		}
	}
	for v, ok := range seen {
		if ok {
			m.Versions = append(m.Versions, uint8(v))
		}
	}
	if len(m.Versions) == 0 {
		return errors.New("version bitmap: it names no version")
	}
	return nil
}
