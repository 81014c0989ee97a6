package ofp

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gen makes random messages that have a wire form.
type gen struct{ *rand.Rand }

func newGen(t *testing.T) gen {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return gen{rand.New(rand.NewPCG(seed, 2))}
}

// ids are the fields that take any value and any mask.
func ids() []FieldID {
	var list []FieldID
	for _, info := range basicFields {
		if info.id != 0 {
			list = append(list, info.id)
		}
	}
	for n := range NumRegs {
		list = append(list, RegID(n))
	}
	return append(list, FieldVLANTCI, FieldIPTOS, FieldIPFrag, FieldIPTTL, FieldTunSrc, FieldTunDst, FieldTunIPv6Src, FieldTunIPv6Dst, FieldPktMark, FieldConjID,
		FieldCTState, FieldCTZone, FieldCTMark, FieldCTLabel, FieldNDReserved, FieldNDOptionsType,
		nxm1|40<<41|60<<32, classExperimenter<<48|5<<41|4<<32|0x4f4e4600)
}

func (g gen) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g gen) field(id FieldID) Field {
	var mask []byte
	if g.IntN(2) == 0 {
		mask = g.bytes(id.Len())
		if g.IntN(4) == 0 {
			mask = bytes.Repeat([]byte{0xff}, id.Len())
		}
	}
	return NewField(id, g.bytes(id.Len()), mask)
}

func (g gen) match() Match {
	var m Match
	all := ids()
	for _, i := range g.Perm(len(all))[:g.IntN(12)] {
		m = append(m, g.field(all[i]))
	}
	return m
}

func (g gen) subfield(bits int) Subfield {
	return Subfield{Field: RegID(g.IntN(NumRegs)), Offset: g.IntN(32 - bits + 1)}
}

func (g gen) action(nested bool) Action {
	all := ids()
	kinds := 12
	if nested {
		kinds = 11
	}
	switch g.IntN(kinds) {
	case 0:
		return Output{Port: g.Uint32(), MaxLen: uint16(1 + g.IntN(NoBuffer))}
	case 1:
		return PushVLAN{EtherType: uint16(g.Uint32())}
	case 2:
		return PopVLAN{}
	case 3:
		return Group{ID: g.Uint32()}
	case 4:
		return DecTTL{}
	case 5:
		return SetField(g.field(all[g.IntN(len(all))]))
	case 6:
		bits := 1 + g.IntN(32)
		return CopyField{Src: g.subfield(bits), Dst: g.subfield(bits), Bits: bits}
	case 7:
		bits := 1 + g.IntN(32)
		return OutputReg{Src: g.subfield(bits), Bits: bits, MaxLen: uint16(1 + g.IntN(NoBuffer))}
	case 8:
		return Resubmit{InPort: uint32(g.IntN(0xff00)), Table: byte(g.Uint32())}
	case 9:
		return CTClear{}
	case 10:
		n := 8 * (1 + g.IntN(4))
		return RawAction{Data: append([]byte{0, 99, 0, byte(n)}, g.bytes(n-4)...)}
	}
	ct := CT{Commit: g.IntN(2) == 0, Table: byte(g.Uint32()), ALG: uint16(g.Uint32())}
	if g.IntN(2) == 0 {
		ct.Zone = uint16(g.Uint32())
	} else {
		ct.ZoneSrc = g.subfield(16)
	}
	if ct.Commit {
		ct.Force = g.IntN(2) == 0
		ct.Exec = g.actions(true)
	}
	return ct
}

func (g gen) actions(nested bool) []Action {
	var list []Action
	for range g.IntN(6) {
		list = append(list, g.action(nested))
	}
	return list
}

func (g gen) instructions() []Instruction {
	var list []Instruction
	for range g.IntN(5) {
		switch g.IntN(6) {
		case 0:
			list = append(list, GotoTable(byte(g.Uint32())))
		case 1:
			list = append(list, WriteMetadata{Metadata: g.Uint64(), Mask: g.Uint64()})
		case 2:
			list = append(list, ClearActions{})
		case 3:
			list = append(list, WriteActions(g.actions(false)))
		case 4:
			list = append(list, RawInstruction{InstructionType: 6, Body: g.bytes(4 + 8*g.IntN(3))})
		case 5:
			list = append(list, ApplyActions(g.actions(false)))
		}
	}
	return list
}

func (g gen) flowMod() *FlowMod {
	return &FlowMod{
		Command: FlowCommand(g.IntN(5)), Table: byte(g.Uint32()), Priority: uint16(g.Uint32()), Cookie: g.Uint64(), CookieMask: g.Uint64(),
		IdleTimeout: uint16(g.Uint32()), HardTimeout: uint16(g.Uint32()), Flags: uint16(g.IntN(32)), Importance: uint16(g.Uint32()),
		OutPort: g.Uint32() >> g.IntN(33), OutGroup: g.Uint32() >> g.IntN(33), Match: g.match(), Instructions: g.instructions(),
	}
}

func TestRandomFlowsRoundTrip(t *testing.T) {
	g := newGen(t)
	for range 3000 {
		m := g.flowMod()
		xid := g.Uint32()
		gotXID, got, err := Decode(mustAppend(t, xid, &BundleAdd{BundleID: 5, Inner: m}))
		if err != nil {
			t.Fatalf("%v\n%s", err, m)
		}
		if want := Message(&BundleAdd{BundleID: 5, Inner: m}); gotXID != xid || !reflect.DeepEqual(want, got) {
			t.Fatalf("xid %#x, want %#x; (-sent +got):\n%s", gotXID, xid, cmp.Diff(want, got, compare))
		}
		f := FlowStats{Table: m.Table, Priority: m.Priority, Cookie: m.Cookie, IdleTimeout: m.IdleTimeout, HardTimeout: m.HardTimeout,
			Flags: m.Flags, Importance: m.Importance, Match: m.Match, Instructions: m.Instructions, Packets: g.Uint64(), Bytes: UnknownCount, IdleAge: -1}
		_, got, err = Decode(mustAppend(t, xid, &FlowStatsReply{Flows: []FlowStats{f, f}}))
		if err != nil {
			t.Fatalf("%v\n%s", err, f)
		}
		if want := Message(&FlowStatsReply{Flows: []FlowStats{f, f}}); !reflect.DeepEqual(want, got) {
			t.Fatalf("(-sent +got):\n%s", cmp.Diff(want, got, compare))
		}
		if f.Canonical() != m.Canonical() || f.Key() != m.Key() {
			t.Fatalf("flow and flow_mod differ:\n%s\n%s", f, m)
		}
	}
}

// naive is the meaning of a match without a mask trick: for every canonical
// field its value and mask in full. CO-13: keys are equal exactly when this is.
func naive(m Match) map[FieldID][2 * maxInline]byte {
	meaning := make(map[FieldID][2 * maxInline]byte)
	for _, f := range m {
		var v [2 * maxInline]byte
		copy(v[:], f.value[:])
		for i := range f.id.Len() {
			v[maxInline+i] = 0xff
			if f.masked {
				v[maxInline+i] = f.mask[i]
			}
		}
		meaning[f.id] = v
	}
	return meaning
}

// TestKeysAreEqualExactlyForEqualMatches draws from a few fields with small
// values, so that equal pairs do come up.
func TestKeysAreEqualExactlyForEqualMatches(t *testing.T) {
	g := newGen(t)
	small := func() Match {
		var m Match
		pool := []func() Field{
			func() Field { return InPort(uint32(g.IntN(2))) },
			func() Field { return Reg(0, uint32(g.IntN(2)), uint32(1+g.IntN(3))) },
			func() Field { return Reg(1, uint32(g.IntN(2)), ^uint32(0)) },
			func() Field { return EthType(uint16(0x0800 + 6*g.IntN(2))) },
			func() Field { return CTState(uint32(g.IntN(4)), 3) },
			func() Field { return VLANVID(uint16(g.IntN(2))) },
		}
		for _, i := range g.Perm(len(pool))[:g.IntN(4)] {
			m = append(m, pool[i]())
		}
		return m
	}
	equal := 0
	for range 30_000 {
		a, b := small(), small()
		same := cmp.Equal(naive(a), naive(b))
		if same {
			equal++
		}
		if (a.Key() == b.Key()) != same {
			t.Fatalf("%s and %s: same match %t, same key %t", a, b, same, !same)
		}
	}
	if equal < 100 {
		t.Errorf("only %d equal pairs came up", equal)
	}
}

func TestKeyIgnoresOrder(t *testing.T) {
	g := newGen(t)
	for range 2000 {
		m := g.match()
		shuffled := append(Match(nil), m...)
		g.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if m.Key() != shuffled.Key() {
			t.Fatalf("%s\n%s", m, shuffled)
		}
	}
}
