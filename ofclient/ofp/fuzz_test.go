package ofp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenFrames reads the frames that were captured between ovs-ofctl, the
// interop tests and a real Open vSwitch: one frame of hexadecimal a line, "#"
// starts a comment.
func goldenFrames(tb testing.TB) map[string][][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/golden/*.hex")
	if err != nil || len(files) == 0 {
		tb.Fatalf("testdata/golden/*.hex: %d files, %v", len(files), err)
	}
	frames := make(map[string][][]byte)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".hex")
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			b, err := hex.DecodeString(line)
			if err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
			frames[name] = append(frames[name], b)
		}
	}
	return frames
}

// seed adds the golden frames and the samples of the wanted types, from byte
// skip on. Long lists are cut into lists of one: the fuzzer wastes its time on
// making long inputs shorter.
func seed(f *testing.F, skip int, types ...Type) {
	f.Helper()
	var add func(frame []byte)
	add = func(frame []byte) {
		if len(frame) > 512 {
			_, m, err := Decode(frame)
			if err != nil {
				f.Fatal(err)
			}
			if reply, ok := m.(*FlowStatsReply); ok && len(reply.Flows) > 1 {
				for i := range reply.Flows {
					add(mustAppend(f, 1, &FlowStatsReply{Flows: reply.Flows[i : i+1]}))
				}
				return
			}
		}
		for _, t := range types {
			if len(frame) > skip && Type(frame[1]) == t {
				f.Add(frame[skip:])
			}
		}
	}
	for _, frames := range goldenFrames(f) {
		for _, frame := range frames {
			add(frame)
		}
	}
	for _, m := range samples() {
		add(mustAppend(f, 1, m))
	}
}

func FuzzDecode(f *testing.F) {
	var all []Type
	for t := range TypeControllerStatus + 1 {
		all = append(all, t)
	}
	seed(f, 0, all...)
	f.Fuzz(func(t *testing.T, frame []byte) { checkStable(t, frame) })
}

func FuzzParseHeader(f *testing.F) {
	seed(f, 0, TypeHello, TypePortStatus)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err == nil && h.Length < HeaderLen {
			t.Errorf("%x: length %d was accepted", b, h.Length)
		}
	})
}

// fuzzBody puts a good header before the fuzzed body, so that no time is lost
// on the header.
func fuzzBody(f *testing.F, typ Type, prefix ...byte) {
	seed(f, HeaderLen, typ)
	f.Fuzz(func(t *testing.T, body []byte) {
		frame := append([]byte{Version, byte(typ), 0, 0, 0, 0, 0, 1}, prefix...)
		frame = append(frame, body...)
		if len(frame) > MaxLen {
			return
		}
		binary.BigEndian.PutUint16(frame[2:], uint16(len(frame)))
		checkStable(t, frame)
	})
}

func FuzzHello(f *testing.F)            { fuzzBody(f, TypeHello) }
func FuzzError(f *testing.F)            { fuzzBody(f, TypeError) }
func FuzzFeaturesReply(f *testing.F)    { fuzzBody(f, TypeFeaturesReply) }
func FuzzSetAsync(f *testing.F)         { fuzzBody(f, TypeSetAsync) }
func FuzzPortStatus(f *testing.F)       { fuzzBody(f, TypePortStatus) }
func FuzzFlowMod(f *testing.F)          { fuzzBody(f, TypeFlowMod) }
func FuzzMultipartRequest(f *testing.F) { fuzzBody(f, TypeMultipartRequest) }
func FuzzMultipartReply(f *testing.F)   { fuzzBody(f, TypeMultipartReply) }
func FuzzBundleControl(f *testing.F)    { fuzzBody(f, TypeBundleControl) }
func FuzzBundleAdd(f *testing.F)        { fuzzBody(f, TypeBundleAdd) }

func FuzzCTFlush(f *testing.F) {
	for _, m := range samples() {
		if _, ok := m.(*CTFlush); ok {
			f.Add(mustAppend(f, 1, m)[16:])
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		frame := []byte{Version, byte(TypeExperimenter), 0, 0, 0, 0, 0, 1, 0, 0, 0x23, 0x20, 0, 0, 0, nxtCTFlush}
		frame = append(frame, body...)
		if len(frame) > MaxLen {
			return
		}
		binary.BigEndian.PutUint16(frame[2:], uint16(len(frame)))
		checkStable(t, frame)
	})
}

// FuzzMatch also checks what Key promises: matches with the same key have the
// same canonical fields, and the text never panics.
func FuzzMatch(f *testing.F) {
	for _, m := range podFlows() {
		b, err := m.Match.append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := reader{b: b}
		m, err := decodeMatch(&r)
		if err != nil {
			return
		}
		enc, err := m.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		back := reader{b: enc}
		again, err := decodeMatch(&back)
		if err != nil {
			t.Fatal(err)
		}
		if m.Key() != again.Key() || m.String() != again.String() {
			t.Errorf("%x: key or text changed on the way", b)
		}
		if k := Match(m.canonical()).Key(); k != m.Key() {
			t.Errorf("%x: the canonical match has another key:\n%x\n%x", b, m.Key(), k)
		}
	})
}

func FuzzActions(f *testing.F) {
	for _, m := range podFlows() {
		for _, in := range m.Instructions {
			if a, ok := in.(ApplyActions); ok {
				b, err := appendActions(nil, a)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := reader{b: b}
		list, err := decodeActions(&r, false)
		if err != nil {
			return
		}
		enc, err := appendActions(nil, list)
		if err != nil {
			t.Fatalf("%x decodes, but does not encode: %v", b, err)
		}
		back := reader{b: enc}
		again, err := decodeActions(&back, false)
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := appendActions(nil, again); !bytes.Equal(enc, c) {
			t.Errorf("%x encodes as\n%x\nthen as\n%x", b, enc, c)
		}
		appendActionsText(nil, list)
		canonicalInstructions(Apply(list...))
	})
}
