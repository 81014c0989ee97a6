package ofp

import "fmt"

// decodeActions reads actions to the end of r. nested is set inside CT.Exec,
// where a further CT stays raw: OVS refuses it, and depth must have an end.
func decodeActions(r *reader, nested bool) ([]Action, error) {
	var actions []Action
	if n := r.countTLVs(2, 8); n > 0 {
		actions = make([]Action, 0, n)
	}
	for r.more() {
		n, ok := r.peek16(2)
		if !ok || n < 8 || n%8 != 0 {
			return nil, fmt.Errorf("action %d length: %d, it must be a multiple of 8 and not 0", len(actions), n)
		}
		c := r.cut(n, "action")
		if r.err != nil {
			return nil, r.err
		}
		a, err := decodeAction(c, nested)
		if err != nil {
			return nil, fmt.Errorf("action %d: %w", len(actions), err)
		}
		actions = append(actions, a)
	}
	return actions, r.err
}

// decodeAction reads one action from r, which holds it alone.
func decodeAction(r reader, nested bool) (Action, error) {
	whole := r.b
	typ := r.u16("action type")
	r.skip(2, "action length")
	var a Action
	var err error
	switch typ {
	case actOutput:
		o := Output{Port: r.u32("output port"), MaxLen: r.u16("output max_len")}
		r.skip(6, "output padding")
		a = o
	case actPushVLAN:
		a = PushVLAN{EtherType: r.u16("push_vlan ethertype")}
		r.skip(2, "push_vlan padding")
	case actPopVLAN:
		a = PopVLAN{}
		r.skip(4, "pop_vlan padding")
	case actGroup:
		a = Group{ID: r.u32("group id")}
	case actDecTTL:
		a = DecTTL{}
		r.skip(4, "dec_ttl padding")
	case actSetField:
		a, err = decodeSetField(&r)
	case actCopyField:
		a, err = decodeCopyField(&r)
	case actExperimenter:
		a, err = decodeNicira(&r, nested)
	}
	if err != nil {
		return nil, err
	}
	if a == nil {
		return RawAction{Data: append([]byte(nil), whole...)}, nil
	}
	if err := r.end("action"); err != nil {
		return nil, err
	}
	return a, nil
}

func decodeSetField(r *reader) (Action, error) {
	f, err := decodeField(r)
	if err != nil {
		return nil, fmt.Errorf("set_field: %w", err)
	}
	r.skip(min(7, len(r.b)), "set_field padding")
	return SetField(f), nil
}

func decodeCopyField(r *reader) (Action, error) {
	a := CopyField{Bits: int(r.u16("move n_bits"))}
	a.Src.Offset = int(r.u16("move src_offset"))
	a.Dst.Offset = int(r.u16("move dst_offset"))
	r.skip(2, "move padding")
	for _, s := range [...]*Subfield{&a.Src, &a.Dst} {
		s.Field, _, _ = decodeFieldID(r)
	}
	if r.err != nil {
		return nil, fmt.Errorf("move: %w", r.err)
	}
	for _, s := range [...]Subfield{a.Src, a.Dst} {
		if err := s.check(a.Bits); err != nil {
			return nil, fmt.Errorf("move: %w", err)
		}
	}
	r.skip(min(7, len(r.b)), "move padding")
	return a, nil
}
