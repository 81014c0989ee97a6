package ofp

// valueKind says how ovs-ofctl writes a field's value.
type valueKind uint8

const (
	kindHex valueKind = iota
	kindDec
	kindMAC
	kindIPv4
	kindIPv6
	kindPort
	kindCTState
	kindTCPFlags
)

// fieldInfo is what the package knows of a field.
type fieldInfo struct {
	id    FieldID
	canon FieldID   // the same field as Open vSwitch writes it in OpenFlow 1.5
	bits  int       // of the value, from the least significant; the rest must be zero
	kind  valueKind // how the value is written
	name  string    // in set_field
	match string    // in a match, when it differs
	nxm   string    // in move and output:REG[], when it is not the name
}

// basicFields is indexed by the field number of the OpenFlow basic class.
var basicFields = [...]fieldInfo{
	0:  {id: FieldInPort, bits: 32, kind: kindPort, name: "in_port", nxm: "NXM_OF_IN_PORT"},
	1:  {id: FieldInPhyPort, bits: 32, kind: kindPort, name: "in_phy_port"},
	2:  {id: FieldMetadata, bits: 64, name: "metadata", nxm: "OXM_OF_METADATA"},
	3:  {id: FieldEthDst, bits: 48, kind: kindMAC, name: "eth_dst", match: "dl_dst", nxm: "NXM_OF_ETH_DST"},
	4:  {id: FieldEthSrc, bits: 48, kind: kindMAC, name: "eth_src", match: "dl_src", nxm: "NXM_OF_ETH_SRC"},
	5:  {id: FieldEthType, bits: 16, name: "eth_type", match: "dl_type", nxm: "NXM_OF_ETH_TYPE"},
	6:  {id: FieldVLANVID, bits: 13, kind: kindDec, name: "vlan_vid", nxm: "OXM_OF_VLAN_VID"},
	7:  {id: FieldVLANPCP, bits: 3, kind: kindDec, name: "vlan_pcp", match: "dl_vlan_pcp", nxm: "OXM_OF_VLAN_PCP"},
	8:  {id: FieldIPDSCP, bits: 6, kind: kindDec, name: "ip_dscp", nxm: "OXM_OF_IP_DSCP"},
	9:  {id: FieldIPECN, bits: 2, kind: kindDec, name: "nw_ecn", nxm: "NXM_NX_IP_ECN"},
	10: {id: FieldIPProto, bits: 8, kind: kindDec, name: "nw_proto", nxm: "NXM_OF_IP_PROTO"},
	11: {id: FieldIPv4Src, bits: 32, kind: kindIPv4, name: "ip_src", match: "nw_src", nxm: "NXM_OF_IP_SRC"},
	12: {id: FieldIPv4Dst, bits: 32, kind: kindIPv4, name: "ip_dst", match: "nw_dst", nxm: "NXM_OF_IP_DST"},
	13: {id: FieldTCPSrc, bits: 16, kind: kindDec, name: "tcp_src", match: "tp_src", nxm: "NXM_OF_TCP_SRC"},
	14: {id: FieldTCPDst, bits: 16, kind: kindDec, name: "tcp_dst", match: "tp_dst", nxm: "NXM_OF_TCP_DST"},
	15: {id: FieldUDPSrc, bits: 16, kind: kindDec, name: "udp_src", match: "tp_src", nxm: "NXM_OF_UDP_SRC"},
	16: {id: FieldUDPDst, bits: 16, kind: kindDec, name: "udp_dst", match: "tp_dst", nxm: "NXM_OF_UDP_DST"},
	17: {id: FieldSCTPSrc, bits: 16, kind: kindDec, name: "sctp_src", match: "tp_src", nxm: "OXM_OF_SCTP_SRC"},
	18: {id: FieldSCTPDst, bits: 16, kind: kindDec, name: "sctp_dst", match: "tp_dst", nxm: "OXM_OF_SCTP_DST"},
	19: {id: FieldICMPv4Type, bits: 8, kind: kindDec, name: "icmp_type", nxm: "NXM_OF_ICMP_TYPE"},
	20: {id: FieldICMPv4Code, bits: 8, kind: kindDec, name: "icmp_code", nxm: "NXM_OF_ICMP_CODE"},
	21: {id: FieldARPOp, bits: 16, kind: kindDec, name: "arp_op", nxm: "NXM_OF_ARP_OP"},
	22: {id: FieldARPSPA, bits: 32, kind: kindIPv4, name: "arp_spa", nxm: "NXM_OF_ARP_SPA"},
	23: {id: FieldARPTPA, bits: 32, kind: kindIPv4, name: "arp_tpa", nxm: "NXM_OF_ARP_TPA"},
	24: {id: FieldARPSHA, bits: 48, kind: kindMAC, name: "arp_sha", nxm: "NXM_NX_ARP_SHA"},
	25: {id: FieldARPTHA, bits: 48, kind: kindMAC, name: "arp_tha", nxm: "NXM_NX_ARP_THA"},
	26: {id: FieldIPv6Src, bits: 128, kind: kindIPv6, name: "ipv6_src", nxm: "NXM_NX_IPV6_SRC"},
	27: {id: FieldIPv6Dst, bits: 128, kind: kindIPv6, name: "ipv6_dst", nxm: "NXM_NX_IPV6_DST"},
	28: {id: FieldIPv6FLabel, bits: 20, name: "ipv6_label", nxm: "NXM_NX_IPV6_LABEL"},
	29: {id: FieldICMPv6Type, bits: 8, kind: kindDec, name: "icmpv6_type", match: "icmp_type", nxm: "NXM_NX_ICMPV6_TYPE"},
	30: {id: FieldICMPv6Code, bits: 8, kind: kindDec, name: "icmpv6_code", match: "icmp_code", nxm: "NXM_NX_ICMPV6_CODE"},
	31: {id: FieldNDTarget, bits: 128, kind: kindIPv6, name: "nd_target", nxm: "NXM_NX_ND_TARGET"},
	32: {id: FieldNDSLL, bits: 48, kind: kindMAC, name: "nd_sll", nxm: "NXM_NX_ND_SLL"},
	33: {id: FieldNDTLL, bits: 48, kind: kindMAC, name: "nd_tll", nxm: "NXM_NX_ND_TLL"},
	34: {id: FieldMPLSLabel, bits: 20, kind: kindDec, name: "mpls_label", nxm: "OXM_OF_MPLS_LABEL"},
	35: {id: FieldMPLSTC, bits: 3, kind: kindDec, name: "mpls_tc", nxm: "OXM_OF_MPLS_TC"},
	36: {id: FieldMPLSBOS, bits: 1, kind: kindDec, name: "mpls_bos", nxm: "OXM_OF_MPLS_BOS"},
	38: {id: FieldTunnelID, bits: 64, name: "tun_id", nxm: "NXM_NX_TUN_ID"},
	42: {id: FieldTCPFlags, bits: 12, kind: kindTCPFlags, name: "tcp_flags", nxm: "NXM_NX_TCP_FLAGS"},
	43: {id: FieldActsetOutput, bits: 32, kind: kindPort, name: "actset_output", nxm: "ONFOXM_ET_ACTSET_OUTPUT"},
	44: {id: FieldPacketType, bits: 32, name: "packet_type", nxm: "OXM_OF_PACKET_TYPE"},
}

// nxm0Twins is indexed by the field number of class NXM_0: the basic field that
// says the same. in_port differs in width and has no twin here.
var nxm0Twins = [...]FieldID{
	1: FieldEthDst, 2: FieldEthSrc, 3: FieldEthType, 6: FieldIPProto, 7: FieldIPv4Src, 8: FieldIPv4Dst,
	9: FieldTCPSrc, 10: FieldTCPDst, 11: FieldUDPSrc, 12: FieldUDPDst, 13: FieldICMPv4Type, 14: FieldICMPv4Code,
	15: FieldARPOp, 16: FieldARPSPA, 17: FieldARPTPA,
}

// nxm1Twins is the same for class NXM_1.
var nxm1Twins = [...]FieldID{
	16: FieldTunnelID, 17: FieldARPSHA, 18: FieldARPTHA, 19: FieldIPv6Src, 20: FieldIPv6Dst, 21: FieldICMPv6Type,
	22: FieldICMPv6Code, 23: FieldNDTarget, 24: FieldNDSLL, 25: FieldNDTLL, 27: FieldIPv6FLabel, 28: FieldIPECN,
	34: FieldTCPFlags,
}

// info returns what is known about the class and number of id. The width of id
// is not judged: compare it with that of the result.
func (id FieldID) info() (fieldInfo, bool) {
	n := id.num()
	switch id.class() {
	case classBasic:
		if n < len(basicFields) && basicFields[n].id != 0 {
			info := basicFields[n]
			info.canon = info.id
			return info, true
		}
	case classNXM0:
		if n < len(nxm0Twins) && nxm0Twins[n] != 0 {
			return twin(nxm0, n, nxm0Twins[n])
		}
	case classNXM1:
		if n < len(nxm1Twins) && nxm1Twins[n] != 0 {
			return twin(nxm1, n, nxm1Twins[n])
		}
	}
	return id.niciraInfo()
}

// twin describes a Nicira field that has a double in the basic class.
func twin(class FieldID, n int, canon FieldID) (fieldInfo, bool) {
	info := basicFields[canon.num()]
	info.canon = canon
	info.id = class | FieldID(n)<<41 | FieldID(canon.Len())<<32
	return info, true
}

// niciraInfo describes the fields that only OVS has.
func (id FieldID) niciraInfo() (fieldInfo, bool) {
	const widthOff = FieldID(0xff) << 32
	n := id.num()
	var info fieldInfo
	switch id &^ widthOff {
	case FieldVLANTCI &^ widthOff:
		info = fieldInfo{id: FieldVLANTCI, bits: 16, name: "vlan_tci", nxm: "NXM_OF_VLAN_TCI"}
	case FieldIPTOS &^ widthOff:
		info = fieldInfo{id: FieldIPTOS, bits: 8, kind: kindDec, name: "nw_tos", nxm: "NXM_OF_IP_TOS"}
	case FieldIPFrag &^ widthOff:
		info = fieldInfo{id: FieldIPFrag, bits: 2, name: "ip_frag", nxm: "NXM_NX_IP_FRAG"}
	case FieldIPTTL &^ widthOff:
		info = fieldInfo{id: FieldIPTTL, bits: 8, kind: kindDec, name: "nw_ttl", nxm: "NXM_NX_IP_TTL"}
	case FieldTunSrc &^ widthOff:
		info = fieldInfo{id: FieldTunSrc, bits: 32, kind: kindIPv4, name: "tun_src", nxm: "NXM_NX_TUN_IPV4_SRC"}
	case FieldTunDst &^ widthOff:
		info = fieldInfo{id: FieldTunDst, bits: 32, kind: kindIPv4, name: "tun_dst", nxm: "NXM_NX_TUN_IPV4_DST"}
	case FieldPktMark &^ widthOff:
		info = fieldInfo{id: FieldPktMark, bits: 32, name: "pkt_mark", nxm: "NXM_NX_PKT_MARK"}
	case FieldConjID &^ widthOff:
		info = fieldInfo{id: FieldConjID, bits: 32, kind: kindDec, name: "conj_id", nxm: "NXM_NX_CONJ_ID"}
	case FieldCTState &^ widthOff:
		info = fieldInfo{id: FieldCTState, bits: 32, kind: kindCTState, name: "ct_state", nxm: "NXM_NX_CT_STATE"}
	case FieldCTZone &^ widthOff:
		info = fieldInfo{id: FieldCTZone, bits: 16, kind: kindDec, name: "ct_zone", nxm: "NXM_NX_CT_ZONE"}
	case FieldCTMark &^ widthOff:
		info = fieldInfo{id: FieldCTMark, bits: 32, name: "ct_mark", nxm: "NXM_NX_CT_MARK"}
	case FieldCTLabel &^ widthOff:
		info = fieldInfo{id: FieldCTLabel, bits: 128, name: "ct_label", nxm: "NXM_NX_CT_LABEL"}
	case FieldTunIPv6Src &^ widthOff:
		info = fieldInfo{id: FieldTunIPv6Src, bits: 128, kind: kindIPv6, name: "tun_ipv6_src", nxm: "NXM_NX_TUN_IPV6_SRC"}
	case FieldTunIPv6Dst &^ widthOff:
		info = fieldInfo{id: FieldTunIPv6Dst, bits: 128, kind: kindIPv6, name: "tun_ipv6_dst", nxm: "NXM_NX_TUN_IPV6_DST"}
	case FieldNDReserved &^ widthOff:
		info = fieldInfo{id: FieldNDReserved, bits: 32, kind: kindDec, name: "nd_reserved", nxm: "ERICOXM_OF_ICMPV6_ND_RESERVED"}
	case FieldNDOptionsType &^ widthOff:
		info = fieldInfo{id: FieldNDOptionsType, bits: 8, kind: kindDec, name: "nd_options_type", nxm: "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE"}
	default:
		if id.class() == classNXM1 && n < NumRegs {
			info = fieldInfo{id: RegID(n), bits: 32, name: regNames[n], nxm: regNXMNames[n]}
		} else if id.class() == classPacketRegs && n < NumRegs/2 {
			info = fieldInfo{id: xregID(n), bits: 64, name: xregNames[n], nxm: xregNXMNames[n]}
		}
	}
	info.canon = info.id
	return info, info.id != 0
}

// xregID is the 64-bit register made of regs 2n (high half) and 2n+1. OVS
// writes the register matches of OpenFlow 1.5 flows in this form.
func xregID(n int) FieldID { return classPacketRegs<<48 | FieldID(n)<<41 | 8<<32 }

var (
	regNames = [NumRegs]string{"reg0", "reg1", "reg2", "reg3", "reg4", "reg5", "reg6", "reg7",
		"reg8", "reg9", "reg10", "reg11", "reg12", "reg13", "reg14", "reg15"}
	regNXMNames = [NumRegs]string{"NXM_NX_REG0", "NXM_NX_REG1", "NXM_NX_REG2", "NXM_NX_REG3", "NXM_NX_REG4", "NXM_NX_REG5",
		"NXM_NX_REG6", "NXM_NX_REG7", "NXM_NX_REG8", "NXM_NX_REG9", "NXM_NX_REG10", "NXM_NX_REG11", "NXM_NX_REG12",
		"NXM_NX_REG13", "NXM_NX_REG14", "NXM_NX_REG15"}
	xregNames    = [NumRegs / 2]string{"xreg0", "xreg1", "xreg2", "xreg3", "xreg4", "xreg5", "xreg6", "xreg7"}
	xregNXMNames = [NumRegs / 2]string{"OXM_OF_PKT_REG0", "OXM_OF_PKT_REG1", "OXM_OF_PKT_REG2", "OXM_OF_PKT_REG3",
		"OXM_OF_PKT_REG4", "OXM_OF_PKT_REG5", "OXM_OF_PKT_REG6", "OXM_OF_PKT_REG7"}
)
