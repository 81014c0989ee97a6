package ofp

import (
	"bytes"
	"strings"
	"testing"
)

// TestGoldenFrames: what a real switch and ovs-ofctl sent decodes and encodes
// to the same bytes. The interop tests do it with fresh frames.
func TestGoldenFrames(t *testing.T) {
	for name, frames := range goldenFrames(t) {
		for i, frame := range frames {
			xid, m, err := Decode(frame)
			if err != nil {
				t.Errorf("%s %d: %v", name, i, err)
				continue
			}
			if again := mustAppend(t, xid, m); !bytes.Equal(frame, again) {
				t.Errorf("%s %d (%T):\n%x\nencodes as\n%x", name, i, m, frame, again)
			}
			if u, ok := m.(*Unknown); ok && name != "session" {
				t.Errorf("%s %d: %s has no type", name, i, u.Type())
			}
		}
	}
}

// TestGoldenTruncated cuts the golden frames too: their inner structures are
// not all ours.
func TestGoldenTruncated(t *testing.T) {
	for _, frames := range goldenFrames(t) {
		for _, frame := range frames {
			for n := HeaderLen; n < len(frame); n++ {
				cut := bytes.Clone(frame[:n])
				cut[2], cut[3] = byte(n>>8), byte(n)
				checkStable(t, cut)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]Error{
		"OFPBFC_TIMEOUT":                 {ErrType: ErrTypeBundleFailed, Code: ErrBundleTimeout},
		"OFPBRC_BAD_TYPE":                {ErrType: ErrTypeBadRequest, Code: ErrBadRequestBadType},
		"NXBRC_MUST_BE_ZERO":             {ErrType: ErrTypeExperimenter, Code: 4, Experimenter: vendorNicira},
		"error 9999 of experimenter 0x1": {ErrType: ErrTypeExperimenter, Code: 9999, Experimenter: 1},
		"error type 99 code 3":           {ErrType: 99, Code: 3},
		"error type 5 code 200":          {ErrType: 5, Code: 200},
		"OFPHFC_INCOMPATIBLE: no way":    {Data: []byte("no way")},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if !strings.HasSuffix(e.Error(), want) {
			t.Errorf("Error() is %q", e.Error())
		}
	}
	refused := Error{Data: mustAppend(t, 0x55, &BarrierRequest{})}
	if h, ok := refused.Refused(); !ok || h.XID != 0x55 || h.Type != TypeBarrierRequest {
		t.Errorf("refused message %+v, %t", h, ok)
	}
	if _, ok := (Error{Data: []byte{1}}).Refused(); ok {
		t.Error("one byte has a header")
	}
}
