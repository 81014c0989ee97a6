package ofp

import (
	"net/netip"
	"time"
)

var (
	macA = [6]byte{0x0a, 0x58, 0x0a, 0x0a, 0x00, 0x03}
	macB = [6]byte{0x0a, 0x58, 0x0a, 0x0a, 0x00, 0x01}
)

// podFlows is a stand-in for one Pod's share of the pipeline: it uses every
// kind of match and action that the pipeline needs.
func podFlows() []FlowMod {
	host4, net4 := netip.MustParsePrefix("10.10.0.3/32"), netip.MustParsePrefix("10.10.0.0/16")
	host6, net6 := netip.MustParsePrefix("fd00:10::3/128"), netip.MustParsePrefix("fd00:10::/64")
	multicast := [6]byte{0x01}
	flow := func(table uint8, prio uint16, match Match, in ...Instruction) FlowMod {
		return FlowMod{Table: table, Priority: prio, Cookie: 0x5e00_0001_0000_0007, Match: match, Instructions: in}
	}
	return []FlowMod{
		flow(0, 200, Match{InPort(3), EthSrc(macA), VLANNone()}, ApplyActions{SetField(Reg(1, 3, ^uint32(0))), SetField(Reg(0, 2, 0xf))}, GotoTable(10)),
		flow(0, 190, Match{InPort(3), VLANTagged()}),
		flow(10, 210, Match{InPort(3), EthType(0x0806), ARPOp(1), ARPSPA(host4), ARPSHA(macA)}, GotoTable(20)),
		flow(10, 210, Match{InPort(3), EthType(0x0806), ARPOp(2), ARPSPA(host4), ARPTPA(net4), ARPTHA(macB)}, GotoTable(20)),
		flow(10, 200, Match{InPort(3), EthSrc(macA), EthType(0x0800), IPv4Src(host4)}, GotoTable(30)),
		flow(10, 200, Match{InPort(3), EthSrc(macA), EthType(0x86dd), IPv6Src(host6)}, GotoTable(30)),
		flow(10, 220, Match{InPort(3), EthType(0x0800), IPProto(17), UDPSrc(67)}),
		flow(10, 220, Match{InPort(3), EthType(0x86dd), IPProto(17), UDPDst(546), UDPSrc(547)}),
		flow(10, 220, Match{InPort(3), EthType(0x86dd), IPProto(58), ICMPv6Type(135), ICMPv6Code(0), NDTarget(host6.Addr()), NDSLL(macA)}, GotoTable(20)),
		flow(20, 200, Match{EthType(0x0806), ARPOp(1), ARPTPA(host4)}, ApplyActions{
			CopyField{Src: Subfield{Field: FieldEthSrc}, Dst: Subfield{Field: FieldEthDst}, Bits: 48}, SetField(EthSrc(macA)),
			SetField(ARPOp(2)), CopyField{Src: Subfield{Field: FieldARPSHA}, Dst: Subfield{Field: FieldARPTHA}, Bits: 48}, SetField(ARPSHA(macA)),
			CopyField{Src: Subfield{Field: FieldARPSPA}, Dst: Subfield{Field: FieldARPTPA}, Bits: 32}, SetField(ARPSPA(host4)), Output{Port: PortInPort}}),
		flow(20, 200, Match{EthType(0x86dd), IPProto(58), ICMPv6Type(135), ICMPv6Code(0), NDTarget(host6.Addr())}, ApplyActions{
			SetField(ICMPv6Type(136)), SetField(NDOptionsType(2)), SetField(NDReserved(0x60000000)), Resubmit{Table: 21}}),
		flow(21, 200, Match{EthType(0x86dd), IPProto(58), ICMPv6Type(136), ICMPv6Code(0)}, ApplyActions{
			SetField(NDTLL(macA)), SetField(NDTarget(host6.Addr())), SetField(IPv6Src(host6)), Output{Port: PortInPort}}),
		flow(30, 200, Match{EthType(0x0800)}, ApplyActions{CT{Zone: 0xfff0, Table: 31}}),
		flow(30, 200, Match{EthType(0x86dd)}, ApplyActions{CT{ZoneSrc: Subfield{Field: RegID(4)}, Table: 31}}),
		flow(31, 200, Match{EthType(0x0800), CTState(CTNew|CTTracked, CTNew|CTTracked), Reg(0, 1, 0xf)}, ApplyActions{
			CT{Commit: true, Zone: 0xfff0, Table: TableNone, Exec: []Action{SetField(CTMark(1, 1))}}}, GotoTable(40)),
		flow(31, 190, Match{EthType(0x0800), CTState(CTInvalid|CTTracked, CTInvalid|CTTracked), CTZone(0xfff0)}),
		flow(31, 180, Match{EthType(0x0800), CTState(CTTracked, CTNew|CTTracked), CTMark(1, 1)}, ApplyActions{SetField(EthDst(macB))}, GotoTable(40)),
		flow(40, 200, Match{EthType(0x0800), EthDst(macB), IPv4Dst(host4)}, ApplyActions{SetField(EthSrc(macB)), SetField(EthDst(macA)), DecTTL{}}, GotoTable(50)),
		flow(40, 200, Match{EthType(0x86dd), EthDst(macB), IPv6Dst(net6)}, ApplyActions{DecTTL{}}, GotoTable(50)),
		flow(50, 200, Match{EthDst(macA), Reg(2, 10, 0xfff)}, ApplyActions{SetField(Reg(1, 3, ^uint32(0))), SetField(Reg(0, 0x100, 0x100))}, GotoTable(60)),
		flow(50, 100, Match{EthDstMasked(multicast, multicast), VLANVID(10)}, ApplyActions{PopVLAN{}, Group{ID: 7}}),
		flow(60, 200, Match{Reg(0, 0x100, 0x100), Reg(3, 5, ^uint32(0)), InPort(3)}, ApplyActions{
			PushVLAN{EtherType: EtherType8021Q}, SetField(VLANVID(10)), OutputReg{Src: Subfield{Field: RegID(1)}, Bits: 32}}),
		flow(60, 190, Match{Reg(15, 0x100, 0x100)}, ApplyActions{Output{Port: 3}, Output{Port: PortController}, CTClear{}, Output{Port: PortLocal}}),
		flow(60, 0, nil),
		flow(61, 5, Match{EthType(0x0800), IPProto(6), TCPDst(80), TCPSrc(1024), PktMark(1, 1)}, WriteMetadata{Metadata: 5, Mask: 0xff}, ClearActions{}, WriteActions{Output{Port: 1}}),
		flow(61, 6, Match{EthType(0x0800), IPProto(1), ICMPv4Type(8), ICMPv4Code(0), IPTTL(64)}, ApplyActions{SetField(IPTTL(3)), Resubmit{InPort: 2, Table: 62}}),
		flow(61, 7, Match{VLANVIDMasked(0x1000|8, 0x1000|0xff8)}, GotoTable(62)),
		flow(61, 8, Match{VLANTCI(0x1005, 0x1fff)}, GotoTable(62)),
	}
}

func samplePort() PortDesc {
	return PortDesc{
		Number: 7, HWAddr: macA, Name: "pod-0123456789a", Config: PortConfigNoFwd, State: PortStateLive,
		Ethernet: PortEthernet{Current: 0x840, Advertised: 1, Supported: 2, Peer: 3, CurrentSpeed: 10_000_000, MaxSpeed: 40_000_000},
	}
}

func sampleStats() []FlowStats {
	var flows []FlowStats
	for i, m := range podFlows() {
		flows = append(flows, FlowStats{
			Table: m.Table, Priority: m.Priority, Cookie: m.Cookie, Match: m.Match, Instructions: m.Instructions,
			IdleTimeout: uint16(i), Duration: 90*time.Second + 5, IdleAge: time.Second, Packets: uint64(i), Bytes: UnknownCount,
		})
	}
	return flows
}

// samples is at least one message of every kind, in the form that Decode gives.
func samples() map[string]Message {
	mods, stats := podFlows(), sampleStats()
	s := map[string]Message{
		"hello":             &Hello{Versions: []uint8{1, 4, 6}},
		"error":             &Error{ErrType: ErrTypeBundleFailed, Code: ErrBundleTimeout, Data: []byte{6, 33, 0, 16, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 3}},
		"error-nicira":      &Error{ErrType: ErrTypeExperimenter, Code: 4, Experimenter: vendorNicira, Data: []byte{1}},
		"echo-request":      &EchoRequest{Data: []byte("are you there")},
		"echo-reply":        &EchoReply{},
		"features-request":  &FeaturesRequest{},
		"features-reply":    &FeaturesReply{DatapathID: 0x0000_0a58_0a0a_0001, Tables: 254, Capabilities: 0x4f},
		"set-config":        &SetConfig{MissSendLen: 128},
		"set-async":         PortStatusOnly(),
		"get-async-request": &GetAsyncRequest{},
		"get-async-reply":   &GetAsyncReply{Props: []AsyncProp{{AsyncPortStatus, 7}}},
		"port-status":       &PortStatus{Reason: PortModified, Desc: samplePort()},
		"port-desc-request": &PortDescRequest{},
		"port-desc-reply":   &PortDescReply{Ports: []PortDesc{samplePort(), {Number: PortLocal, Name: "br0"}}, More: true},
		"flow-request":      &FlowStatsRequest{Table: TableAll, Cookie: 5, CookieMask: 0xff, Match: Match{InPort(3)}},
		"flow-reply":        &FlowStatsReply{Flows: stats, More: true},
		"flow-reply-empty":  &FlowStatsReply{},
		"barrier-request":   &BarrierRequest{},
		"barrier-reply":     &BarrierReply{},
		"bundle-open":       &BundleControl{BundleID: 1, Kind: BundleOpenRequest, Flags: BundleAtomic | BundleOrdered},
		"bundle-commit":     &BundleControl{BundleID: 1, Kind: BundleCommitReply, Flags: BundleOrdered},
		"bundle-add":        &BundleAdd{BundleID: 1, Flags: BundleAtomic, Inner: &mods[0]},
		"ct-flush": &CTFlush{Zone: 0xfff0, Orig: CTTuple{Src: netip.MustParseAddr("10.10.0.3")},
			Reply: CTTuple{Dst: netip.MustParseAddr("10.10.0.4")}},
		"ct-flush-tcp": &CTFlush{AllZones: true, Proto: 6, Orig: CTTuple{Src: netip.MustParseAddr("fd00::3"), SrcPort: 1, DstPort: 80}},
		"ct-flush-icmp": &CTFlush{Zone: 1, Proto: 1, Orig: CTTuple{Src: netip.MustParseAddr("10.0.0.1"), ICMPID: 3, ICMPType: 8},
			Reply: CTTuple{ICMPID: 3}},
		"unknown":           &Unknown{MessageType: TypePacketIn, Body: []byte{1, 2, 3}},
		"unknown-multipart": &Unknown{MessageType: TypeMultipartReply, Body: []byte{0, 99, 0, 0, 0, 0, 0, 0, 1}},
		"flow-delete": &FlowMod{Command: FlowDeleteStrict, Table: 5, Priority: 9, Cookie: 1, CookieMask: 3, OutPort: 4, OutGroup: 6,
			Match: Match{InPort(3)}, Flags: FlagSendFlowRemoved, IdleTimeout: 3, HardTimeout: 4, Importance: 2},
		"flow-raw": &FlowMod{Match: Match{NewField(0x0001<<48|40<<41|20<<32, make([]byte, 20), make([]byte, 20)), NewField(0xffff<<48|3<<41|4<<32|0x1234, []byte{1, 2, 3, 4}, nil)},
			Instructions: []Instruction{ApplyActions{RawAction{Data: []byte{0xff, 0xff, 0, 16, 0, 0, 0x23, 0x20, 0, 8, 'n', 'o', 't', 'e', 0, 0}}}, RawInstruction{InstructionType: 6, Body: []byte{0, 0, 0, 5}}}},
	}
	for i := range mods {
		s["flow-mod-"+mods[i].String()] = &mods[i]
	}
	return s
}
