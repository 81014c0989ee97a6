package ofp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// compare follows unexported fields too: Field has no other.
var compare = cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()}

func mustAppend(t testing.TB, xid uint32, m Message) []byte {
	t.Helper()
	b, err := Append(nil, xid, m)
	if err != nil {
		t.Fatalf("encode %s: %v", m.Type(), err)
	}
	return b
}

func TestRoundTripOfEveryMessage(t *testing.T) {
	for name, m := range samples() {
		t.Run(name, func(t *testing.T) {
			frame := mustAppend(t, 0xdecade, m)
			if got := int(binary.BigEndian.Uint16(frame[2:])); got != len(frame) {
				t.Errorf("length field %d, frame has %d bytes", got, len(frame))
			}
			xid, got, err := Decode(frame)
			if err != nil {
				t.Fatal(err)
			}
			if xid != 0xdecade {
				t.Errorf("xid %#x", xid)
			}
			want := m
			if f, ok := m.(*FlowMod); ok {
				want = withMaxLen(f)
			}
			if add, ok := m.(*BundleAdd); ok {
				c := *add
				c.Inner = withMaxLen(add.Inner.(*FlowMod))
				want = &c
			}
			if r, ok := m.(*FlowStatsReply); ok {
				want = statsWithMaxLen(r)
			}
			if diff := cmp.Diff(want, got, compare); diff != "" {
				t.Errorf("decoded message differs (-sent +got):\n%s", diff)
			}
			again := mustAppend(t, 0xdecade, got)
			if !bytes.Equal(frame, again) {
				t.Errorf("encoded again:\n%x\nwas\n%x", again, frame)
			}
		})
	}
}

// withMaxLen writes the NoBuffer that a zero MaxLen stands for.
func withMaxLen(m *FlowMod) *FlowMod {
	c := *m
	c.Instructions = instructionsWithMaxLen(m.Instructions)
	return &c
}

func statsWithMaxLen(r *FlowStatsReply) *FlowStatsReply {
	c := &FlowStatsReply{More: r.More}
	for _, f := range r.Flows {
		f.Instructions = instructionsWithMaxLen(f.Instructions)
		c.Flows = append(c.Flows, f)
	}
	return c
}

func instructionsWithMaxLen(list []Instruction) []Instruction {
	var out []Instruction
	for _, in := range list {
		if apply, ok := in.(ApplyActions); ok {
			var actions ApplyActions
			for _, a := range apply {
				switch v := a.(type) {
				case Output:
					if v.Port == PortController {
						v.MaxLen = NoBuffer
					}
					a = v
				case OutputReg:
					v.MaxLen = NoBuffer
					a = v
				}
				actions = append(actions, a)
			}
			in = actions
		}
		out = append(out, in)
	}
	return out
}

// CO-1: nothing that was decoded may point into the frame.
func TestDecodedMessageDoesNotShareTheBuffer(t *testing.T) {
	for name, m := range samples() {
		frame := mustAppend(t, 1, m)
		_, first, err := Decode(frame)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := mustAppend(t, 1, first)
		for i := range frame {
			frame[i] ^= 0xa5
		}
		if after := mustAppend(t, 1, first); !bytes.Equal(before, after) {
			t.Errorf("%s changed when its buffer was overwritten", name)
		}
	}
}

// TestTruncationSweep cuts every frame at every length, once with the length
// field as it was and once with it mended, so that inner lengths lie.
func TestTruncationSweep(t *testing.T) {
	for name, m := range samples() {
		frame := mustAppend(t, 1, m)
		for n := range len(frame) {
			if _, _, err := Decode(frame[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes were accepted", name, n, len(frame))
			}
			if n < HeaderLen {
				continue
			}
			cut := bytes.Clone(frame[:n])
			binary.BigEndian.PutUint16(cut[2:], uint16(n))
			checkStable(t, cut)
		}
		for _, more := range []int{1, 7, 8, 9} {
			long := append(bytes.Clone(frame), make([]byte, more)...)
			if _, _, err := Decode(long); err == nil {
				t.Errorf("%s: %d bytes behind the frame were accepted", name, more)
			}
			binary.BigEndian.PutUint16(long[2:], uint16(len(long)))
			checkStable(t, long)
		}
	}
}

// TestEveryByteWrong changes every byte of every frame to a few values; of a
// long list only some bytes, its elements are frames of their own elsewhere.
func TestEveryByteWrong(t *testing.T) {
	for _, m := range samples() {
		frame := mustAppend(t, 1, m)
		step := 1 + len(frame)/256
		for i := 0; i < len(frame); i += step {
			for _, v := range []byte{0, 1, 4, 8, 0x7f, 0xff, frame[i] + 1, frame[i] - 1} {
				bad := bytes.Clone(frame)
				bad[i] = v
				checkStable(t, bad)
			}
		}
	}
}

// checkStable decodes a frame that may be wrong. What decodes must encode, and
// encoding must be stable from then on.
func checkStable(t testing.TB, frame []byte) {
	t.Helper()
	xid, m, err := Decode(frame)
	if err != nil {
		if err.Error() == "" || m != nil {
			t.Errorf("%x: message %v beside error %q", frame, m, err)
		}
		return
	}
	b, err := Append(nil, xid, m)
	if err != nil {
		if strings.Contains(err.Error(), "length field has 16 bits") {
			return // grew by the Ethernet property that its ports lacked
		}
		t.Fatalf("%x decodes, but does not encode: %v", frame, err)
	}
	_, again, err := Decode(b)
	if err != nil {
		t.Fatalf("%x\nencodes as\n%x\nwhich does not decode: %v", frame, b, err)
	}
	if c := mustAppend(t, xid, again); !bytes.Equal(b, c) {
		t.Fatalf("%x\nencodes as\n%x\nthen as\n%x", frame, b, c)
	}
	if s, ok := again.(interface{ String() string }); ok && s.String() == "" {
		t.Errorf("%x has an empty text", frame)
	}
}

func TestParseHeader(t *testing.T) {
	for _, tc := range []struct {
		b    []byte
		want string
	}{
		{nil, "version: needs 1 bytes, 0 are left"},
		{[]byte{6, 0, 0, 8, 0, 0, 0}, "xid: needs 4 bytes, 3 are left"},
		{[]byte{6, 0, 0, 4, 0, 0, 0, 1}, "length 4 is less than the header's own 8 bytes"},
		{[]byte{6, 0, 0, 0, 0, 0, 0, 1}, "length 0 is less"},
	} {
		if _, err := ParseHeader(tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%x: error %v, want %q", tc.b, err, tc.want)
		}
	}
	h, err := ParseHeader([]byte{4, 35, 0xff, 0xff, 1, 2, 3, 4, 99})
	if want := (Header{Version: 4, Type: TypeControllerStatus, Length: 0xffff, XID: 0x01020304}); err != nil || h != want {
		t.Errorf("got %+v, %v; want %+v", h, err, want)
	}
}

func TestDecodeNamesTheFieldAtFault(t *testing.T) {
	patch := func(m Message, off int, v ...byte) []byte {
		b := mustAppend(t, 0x77, m)
		copy(b[off:], v)
		return b
	}
	mod := &FlowMod{Match: Match{EthType(0x0800)}, Instructions: Apply(Output{Port: 1})}
	for name, tc := range map[string]struct {
		frame []byte
		want  string
	}{
		"version":           {patch(&BarrierRequest{}, 0, 4), "decode BARRIER_REQUEST (xid 0x77): version: 4"},
		"buffer":            {patch(mod, 32, 0), "buffer_id"},
		"match type":        {patch(mod, 48, 0, 0), "match type: 0"},
		"match length":      {patch(mod, 50, 0, 3), "match length: 3"},
		"match too long":    {patch(mod, 50, 2, 0), "match: needs"},
		"oxm length":        {patch(mod, 55, 3), "eth_type: value of 3 bytes, it has 2"},
		"odd masked length": {patch(mod, 54, 0x0b, 3), "oxm_length: 3 is odd"},
		"instruction":       {patch(mod, 66, 0, 4), "instruction 0 length: 4"},
		"action":            {patch(mod, 74, 0, 0), "action 0 length: 0"},
		"action too long":   {patch(mod, 74, 0, 24), "action: needs 24 bytes"},
		"inner xid":         {patch(&BundleAdd{Inner: &BarrierRequest{}}, 20, 9), "inner message: xid 0x9000077 differs"},
		"port name":         {patch(&PortStatus{}, 20, 0, 8), "port length: 8"},
	} {
		if xid, _, err := Decode(tc.frame); err == nil || !strings.Contains(err.Error(), tc.want) || xid != 0x77 {
			t.Errorf("%s: xid %#x, error %v; want %q", name, xid, err, tc.want)
		}
	}
}

func TestAppendRefusesWhatHasNoWireForm(t *testing.T) {
	apply := func(a Action) Message { return &FlowMod{Instructions: Apply(a)} }
	match := func(f ...Field) Message { return &FlowMod{Match: f} }
	for want, m := range map[string]Message{
		"reg16: registers are reg0 to reg15":   match(Reg(16, 1, 1)),
		"vlan_vid: 4096 is no VLAN id":         match(VLANVID(4096)),
		"the zero Field names no field":        match(Field{}),
		"in_port stands twice":                 match(InPort(1), InPort(2)),
		"force and exec need commit":           apply(CT{Exec: []Action{SetField(CTMark(1, 1))}}),
		"exec cannot hold a ct":                apply(CT{Commit: true, Exec: []Action{CT{}}}),
		"do not make an action":                apply(RawAction{Data: make([]byte, 12)}),
		"action 0: nil":                        apply(nil),
		"bits 40 to 55 of a field that has 48": apply(CopyField{Src: Subfield{FieldEthSrc, 40}, Dst: Subfield{FieldEthDst, 0}, Bits: 16}),
		"cannot be its source":                 apply(OutputReg{Src: Subfield{FieldIPv6Src, 0}, Bits: 128}),
		"port 70000 has no 16-bit form":        apply(Resubmit{InPort: 70000}),
		"at most 15 bytes":                     &PortStatus{Desc: PortDesc{Name: "0123456789abcdef"}},
		"a bundle cannot hold a bundle":        &BundleAdd{Inner: &BundleAdd{}},
		"no message to encode":                 &BundleAdd{},
		"do not fit protocol":                  &CTFlush{Proto: 1, Orig: CTTuple{SrcPort: 1}},
	} {
		dst := []byte("kept")
		b, err := Append(dst, 1, m)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if string(b) != "kept" {
			t.Errorf("%s: dst came back as %q", want, b)
		}
	}
}

// CO-5: the length field has 16 bits; one byte more is an error, not a lie.
func TestLongestMessage(t *testing.T) {
	for n := MaxLen - HeaderLen - 8; n <= MaxLen-HeaderLen+8; n++ {
		b, err := Append(nil, 1, &EchoRequest{Data: make([]byte, n)})
		if fits := n+HeaderLen <= MaxLen; fits != (err == nil) {
			t.Errorf("%d bytes of data: %v", n, err)
		} else if fits && len(b) != n+HeaderLen {
			t.Errorf("%d bytes of data make a frame of %d", n, len(b))
		}
	}
	mod := &FlowMod{}
	for range 8200 {
		mod.Instructions = append(mod.Instructions, ClearActions{})
	}
	if _, err := Append(nil, 1, mod); err == nil {
		t.Error("a flow_mod above 64 KiB was encoded")
	}
	big := ApplyActions{}
	for range 5000 {
		big = append(big, Output{Port: 1})
	}
	if _, err := Append(nil, 1, &FlowMod{Instructions: []Instruction{big}}); err == nil {
		t.Error("an action list above 64 KiB was encoded")
	}
}

// TestRandomBytes feeds noise behind a good header.
func TestRandomBytes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 20_000 {
		b := make([]byte, HeaderLen+rnd.IntN(120))
		for i := range b {
			if b[i] = byte(rnd.IntN(256)); rnd.IntN(2) == 0 {
				b[i] = byte(rnd.IntN(4))
			}
		}
		b[0], b[1] = Version, byte(rnd.IntN(36))
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		checkStable(t, b)
	}
}
