package ofp

import "fmt"

// FieldID names a match field: class (16 bits), field number (7), width of its
// value in bytes (8) and experimenter (32), packed as an OXM header without its
// mask bit. It is comparable and can be a map key.
type FieldID uint64

const (
	classNXM0         = 0x0000
	classNXM1         = 0x0001
	classEricsson     = 0x1000
	classBasic        = 0x8000
	classPacketRegs   = 0x8001
	classExperimenter = 0xffff
)

// OpenFlow basic class fields. OVS prefers them to their NXM twins.
const (
	basic FieldID = classBasic << 48

	FieldInPort       = basic | 0<<41 | 4<<32
	FieldInPhyPort    = basic | 1<<41 | 4<<32
	FieldMetadata     = basic | 2<<41 | 8<<32
	FieldEthDst       = basic | 3<<41 | 6<<32
	FieldEthSrc       = basic | 4<<41 | 6<<32
	FieldEthType      = basic | 5<<41 | 2<<32
	FieldVLANVID      = basic | 6<<41 | 2<<32
	FieldVLANPCP      = basic | 7<<41 | 1<<32
	FieldIPDSCP       = basic | 8<<41 | 1<<32
	FieldIPECN        = basic | 9<<41 | 1<<32
	FieldIPProto      = basic | 10<<41 | 1<<32
	FieldIPv4Src      = basic | 11<<41 | 4<<32
	FieldIPv4Dst      = basic | 12<<41 | 4<<32
	FieldTCPSrc       = basic | 13<<41 | 2<<32
	FieldTCPDst       = basic | 14<<41 | 2<<32
	FieldUDPSrc       = basic | 15<<41 | 2<<32
	FieldUDPDst       = basic | 16<<41 | 2<<32
	FieldSCTPSrc      = basic | 17<<41 | 2<<32
	FieldSCTPDst      = basic | 18<<41 | 2<<32
	FieldICMPv4Type   = basic | 19<<41 | 1<<32
	FieldICMPv4Code   = basic | 20<<41 | 1<<32
	FieldARPOp        = basic | 21<<41 | 2<<32
	FieldARPSPA       = basic | 22<<41 | 4<<32
	FieldARPTPA       = basic | 23<<41 | 4<<32
	FieldARPSHA       = basic | 24<<41 | 6<<32
	FieldARPTHA       = basic | 25<<41 | 6<<32
	FieldIPv6Src      = basic | 26<<41 | 16<<32
	FieldIPv6Dst      = basic | 27<<41 | 16<<32
	FieldIPv6FLabel   = basic | 28<<41 | 4<<32
	FieldICMPv6Type   = basic | 29<<41 | 1<<32
	FieldICMPv6Code   = basic | 30<<41 | 1<<32
	FieldNDTarget     = basic | 31<<41 | 16<<32
	FieldNDSLL        = basic | 32<<41 | 6<<32
	FieldNDTLL        = basic | 33<<41 | 6<<32
	FieldMPLSLabel    = basic | 34<<41 | 4<<32
	FieldMPLSTC       = basic | 35<<41 | 1<<32
	FieldMPLSBOS      = basic | 36<<41 | 1<<32
	FieldTunnelID     = basic | 38<<41 | 8<<32
	FieldTCPFlags     = basic | 42<<41 | 2<<32
	FieldActsetOutput = basic | 43<<41 | 4<<32
	FieldPacketType   = basic | 44<<41 | 4<<32
)

// Nicira fields that have no twin in the basic class.
const (
	nxm0 FieldID = classNXM0 << 48
	nxm1 FieldID = classNXM1 << 48

	FieldVLANTCI = nxm0 | 4<<41 | 2<<32 // the whole tag, CFI bit set when there is one
	FieldIPTOS   = nxm0 | 5<<41 | 1<<32
	FieldReg0    = nxm1 | 0<<41 | 4<<32 // RegID gives the others
	FieldIPFrag  = nxm1 | 26<<41 | 1<<32
	FieldIPTTL   = nxm1 | 29<<41 | 1<<32
	FieldTunSrc  = nxm1 | 31<<41 | 4<<32
	FieldTunDst  = nxm1 | 32<<41 | 4<<32
	FieldPktMark = nxm1 | 33<<41 | 4<<32
	FieldConjID  = nxm1 | 37<<41 | 4<<32
	FieldCTState = nxm1 | 105<<41 | 4<<32
	FieldCTZone  = nxm1 | 106<<41 | 2<<32
	FieldCTMark  = nxm1 | 107<<41 | 4<<32
	FieldCTLabel = nxm1 | 108<<41 | 16<<32

	FieldTunIPv6Src = nxm1 | 109<<41 | 16<<32
	FieldTunIPv6Dst = nxm1 | 110<<41 | 16<<32
)

// Fields of neighbour discovery that OVS has from 2.11 on (class ERICOXM).
const (
	FieldNDReserved    FieldID = classEricsson<<48 | 1<<41 | 4<<32
	FieldNDOptionsType FieldID = classEricsson<<48 | 2<<41 | 1<<32
)

// NumRegs is how many 32-bit registers OVS has: reg0 to reg15.
const NumRegs = 16

// RegID is the field of register n; 0, which names no field, when there is no such register.
func RegID(n int) FieldID {
	if n < 0 || n >= NumRegs {
		return 0
	}
	return FieldReg0 | FieldID(n)<<41
}

func (id FieldID) class() int           { return int(id >> 48) }
func (id FieldID) num() int             { return int(id>>41) & 0x7f }
func (id FieldID) experimenter() uint32 { return uint32(id) }

// Len is the width of the field's value in bytes.
func (id FieldID) Len() int { return int(id>>32) & 0xff }

// headerLen is the size of the OXM header: experimenter fields carry 4 bytes more.
func (id FieldID) headerLen() int {
	if id.class() == classExperimenter {
		return 8
	}
	return 4
}

// appendHeader appends the OXM header. Its length field counts the experimenter.
func (id FieldID) appendHeader(b []byte, masked bool) ([]byte, error) {
	n := id.Len()
	hm := 0
	if masked {
		n, hm = 2*n, 1
	}
	exp := id.class() == classExperimenter
	if exp {
		n += 4
	}
	if n > 0xff {
		return nil, fmt.Errorf("field %s: %d bytes, its length field has 8 bits", id, n)
	}
	b = put16(b, uint16(id.class()))
	b = append(b, byte(id.num()<<1|hm), byte(n))
	if exp {
		b = put32(b, id.experimenter())
	}
	return b, nil
}

// decodeFieldID reads an OXM header. payload is how many bytes of value and
// mask follow in a match or a set-field action.
func decodeFieldID(r *reader) (id FieldID, masked bool, payload int) {
	class := r.u16("oxm_class")
	num := r.u8("oxm_field")
	n := int(r.u8("oxm_length"))
	masked = num&1 != 0
	id = FieldID(class)<<48 | FieldID(num>>1)<<41
	if class == classExperimenter {
		id |= FieldID(r.u32("oxm_experimenter"))
		if n -= 4; r.err == nil && n < 0 {
			r.err = fmt.Errorf("oxm_length: %d is too short for an experimenter", n+4)
		}
	}
	if r.err != nil {
		return 0, false, 0
	}
	width := n
	if masked {
		width /= 2
		if n%2 != 0 {
			r.err = fmt.Errorf("oxm_length: %d is odd though there is a mask", n)
		}
	}
	if width == 0 && r.err == nil {
		r.err = fmt.Errorf("oxm_length: field %#x:%d has no value", class, num>>1)
	}
	id |= FieldID(width) << 32
	if info, ok := id.info(); ok && info.id.Len() != width && r.err == nil {
		r.err = fmt.Errorf("%s: value of %d bytes, it has %d", info.name, width, info.id.Len())
	}
	return id, masked, n
}

// String is the field's name in ovs-ofctl's set_field, or "class:number/length"
// for a field that the package does not know.
func (id FieldID) String() string {
	if info, ok := id.info(); ok {
		return info.name
	}
	return fmt.Sprintf("field %#x:%d/%d", id.class(), id.num(), id.Len())
}
