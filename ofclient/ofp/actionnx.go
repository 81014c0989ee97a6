package ofp

import (
	"errors"
	"fmt"
)

// Nicira extensions: actions under vendorNicira that OVS has in every version.
const (
	vendorNicira = 0x00002320

	nxastResubmitTable = 14
	nxastOutputReg     = 15
	nxastCT            = 35
	nxastCTClear       = 43
)

// TableNone as CT.Table means that the packet is not looked up again.
const TableNone = 0xff

// OutputReg sends the packet out of the port whose number stands in a field.
type OutputReg struct {
	Src    Subfield
	Bits   int    // how many bits of the field make the number
	MaxLen uint16 // for PortController; 0 is written as NoBuffer
}

// Resubmit looks the packet up in a table and comes back. InPort replaces the
// in_port for that look-up; 0 and PortInPort leave it.
type Resubmit struct {
	InPort uint32
	Table  uint8
}

// CT sends the packet through the connection tracker.
type CT struct {
	Commit  bool
	Force   bool     // only with Commit: replaces an entry of the other direction
	Zone    uint16   // when ZoneSrc names no field
	ZoneSrc Subfield // 16 bits of this field give the zone
	Table   uint8    // look the tracked packet up here; TableNone (0xff) for not at all
	ALG     uint16   // well-known port of the protocol to help; 0 for none
	Exec    []Action // only with Commit: sets CTMark or the label
}

// CTClear forgets what the connection tracker said about the packet.
type CTClear struct{}

func putNicira(b []byte, length int, subtype uint16) []byte {
	b = put16(put16(b, actExperimenter), uint16(length))
	return put16(put32(b, vendorNicira), subtype)
}

// ofsBits packs a range as Nicira actions do: offset in the high 10 bits, count less one in the low 6.
func ofsBits(offset, bits int) uint16 { return uint16(offset)<<6 | uint16(bits-1) }

func (a OutputReg) appendAction(b []byte) ([]byte, error) {
	if err := a.Src.check(a.Bits); err != nil {
		return nil, fmt.Errorf("output to a field: %w", err)
	}
	if a.Src.Field.headerLen() != 4 || a.Bits > 64 {
		return nil, fmt.Errorf("output to a field: %s[%d bits] cannot be its source", a.Src.Field, a.Bits)
	}
	if a.MaxLen == 0 {
		a.MaxLen = NoBuffer
	}
	b = putNicira(b, 24, nxastOutputReg)
	b = put16(b, ofsBits(a.Src.Offset, a.Bits))
	b, err := a.Src.Field.appendHeader(b, false)
	if err != nil {
		return nil, err
	}
	return putZeros(put16(b, a.MaxLen), 6), nil
}

// port16 maps a port number to the 16 bits of OpenFlow 1.0, which some Nicira actions use.
func port16(port uint32) (uint16, error) {
	switch {
	case port < 0xff00:
		return uint16(port), nil
	case port >= PortMax:
		return uint16(port), nil // 0xffffff00 to 0xffffffff keep their low half
	}
	return 0, fmt.Errorf("port %d has no 16-bit form", port)
}

func port32(port uint16) uint32 {
	if port >= 0xff00 {
		return 0xffff0000 | uint32(port)
	}
	return uint32(port)
}

func (a Resubmit) appendAction(b []byte) ([]byte, error) {
	if a.InPort == 0 {
		a.InPort = PortInPort
	}
	port, err := port16(a.InPort)
	if err != nil {
		return nil, fmt.Errorf("resubmit: %w", err)
	}
	b = put16(putNicira(b, 16, nxastResubmitTable), port)
	return append(b, a.Table, 0, 0, 0), nil
}

func (CTClear) appendAction(b []byte) ([]byte, error) {
	return putZeros(putNicira(b, 16, nxastCTClear), 6), nil
}

const (
	ctCommit = 1 << 0
	ctForce  = 1 << 1
)

func (a CT) appendAction(b []byte) ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	start := len(b)
	var flags uint16
	if a.Commit {
		flags |= ctCommit
	}
	if a.Force {
		flags |= ctForce
	}
	b = put16(putNicira(b, 0, nxastCT), flags)
	if a.ZoneSrc.Field == 0 {
		b = put16(put32(b, 0), a.Zone)
	} else {
		if err := a.ZoneSrc.check(16); err != nil || a.ZoneSrc.Field.headerLen() != 4 {
			return nil, fmt.Errorf("ct: 16 bits of %s from %d cannot be the zone", a.ZoneSrc.Field, a.ZoneSrc.Offset)
		}
		var err error
		if b, err = a.ZoneSrc.Field.appendHeader(b, false); err != nil {
			return nil, fmt.Errorf("ct: %w", err)
		}
		b = put16(b, ofsBits(a.ZoneSrc.Offset, 16))
	}
	b = append(b, a.Table, 0, 0, 0)
	b = put16(b, a.ALG)
	b, err := appendActions(b, a.Exec)
	if err != nil {
		return nil, fmt.Errorf("ct: exec: %w", err)
	}
	return b, setLen16(b, start, 2, "ct")
}

// check refuses what OVS refuses. A raw action in Exec may be a nat, the one
// thing that needs no commit.
func (a CT) check() error {
	needs := a.Force
	for _, e := range a.Exec {
		switch e.(type) {
		case CT:
			return errors.New("ct: exec cannot hold a ct")
		case RawAction:
		default:
			needs = true
		}
	}
	if needs && !a.Commit {
		return errors.New("ct: force and exec need commit")
	}
	return nil
}

// decodeNicira reads what follows type and length of an experimenter action;
// nil for one that stays raw.
func decodeNicira(r *reader, nested bool) (Action, error) {
	vendor := r.u32("experimenter")
	subtype := r.u16("experimenter subtype")
	if r.err != nil || vendor != vendorNicira {
		return nil, nil // another vendor's action has a form of its own
	}
	switch subtype {
	case nxastResubmitTable:
		a := Resubmit{InPort: port32(r.u16("resubmit in_port")), Table: r.u8("resubmit table")}
		if a.InPort == PortInPort {
			a.InPort = 0
		}
		r.skip(3, "resubmit padding")
		return a, r.err
	case nxastOutputReg:
		return decodeOutputReg(r)
	case nxastCTClear:
		r.skip(6, "ct_clear padding")
		return CTClear{}, r.err
	case nxastCT:
		if !nested {
			return decodeCT(r)
		}
	}
	return nil, nil
}

func decodeOutputReg(r *reader) (Action, error) {
	rng := int(r.u16("output ofs_nbits"))
	a := OutputReg{Bits: rng&0x3f + 1, Src: Subfield{Offset: rng >> 6}}
	a.Src.Field, _, _ = decodeFieldID(r)
	a.MaxLen = r.u16("output max_len")
	r.skip(6, "output padding")
	if r.err != nil {
		return nil, r.err
	}
	if err := a.Src.check(a.Bits); err != nil {
		return nil, fmt.Errorf("output to a field: %w", err)
	}
	return a, nil
}

func decodeCT(r *reader) (Action, error) {
	flags := r.u16("ct flags")
	a := CT{Commit: flags&ctCommit != 0, Force: flags&ctForce != 0}
	zone := reader{b: r.take(4, "ct zone_src"), err: r.err}
	imm := r.u16("ct zone")
	if r.err == nil {
		if n, _ := (&reader{b: zone.b}).peek16(0); n != 0 || zone.b[2] != 0 || zone.b[3] != 0 {
			a.ZoneSrc.Field, _, _ = decodeFieldID(&zone)
			a.ZoneSrc.Offset = int(imm >> 6)
			if zone.err != nil {
				return nil, fmt.Errorf("ct zone: %w", zone.err)
			}
			if err := a.ZoneSrc.check(16); err != nil {
				return nil, fmt.Errorf("ct zone: %w", err)
			}
		} else {
			a.Zone = imm
		}
	}
	a.Table = r.u8("ct table")
	r.skip(3, "ct padding")
	a.ALG = r.u16("ct alg")
	if r.err != nil {
		return nil, r.err
	}
	var err error
	if a.Exec, err = decodeActions(r, true); err != nil {
		return nil, fmt.Errorf("ct exec: %w", err)
	}
	return a, a.check()
}
