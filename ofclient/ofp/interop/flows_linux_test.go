package interop

import (
	"net/netip"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// flowCase is one flow in our words and in ovs-ofctl's.
type flowCase struct {
	text string
	mod  ofp.FlowMod
}

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func flowOf(table uint8, prio uint16, match ofp.Match, in ...ofp.Instruction) ofp.FlowMod {
	return ofp.FlowMod{Table: table, Priority: prio, Match: match, Instructions: in}
}

func apply(actions ...ofp.Action) ofp.Instruction { return ofp.ApplyActions(actions) }

func whole(id ofp.FieldID) ofp.Subfield { return ofp.Subfield{Field: id} }

// flowCases uses every kind of match and action that the pipeline needs.
func flowCases() []flowCase {
	mac, gw := [6]byte{0x0a, 0x58, 0x0a, 0x0a, 0, 3}, [6]byte{0x0a, 0x58, 0x0a, 0x0a, 0, 1}
	mcast := [6]byte{1}
	host4, host6 := pfx("10.10.0.3/32"), pfx("fd00:10::3/128")
	const arp, ip4, ip6 = 0x0806, 0x0800, 0x86dd
	set := func(f ofp.Field) ofp.Action { return ofp.SetField(f) }
	move := func(src, dst ofp.FieldID, bits int) ofp.Action {
		return ofp.CopyField{Src: whole(src), Dst: whole(dst), Bits: bits}
	}
	return []flowCase{
		{"table=0,priority=200,in_port=3,dl_src=0a:58:0a:0a:00:03,vlan_tci=0/0x1fff actions=set_field:3->reg1,set_field:2/0xf->reg0,goto_table:10",
			flowOf(0, 200, ofp.Match{ofp.InPort(3), ofp.EthSrc(mac), ofp.VLANNone()}, apply(set(ofp.Reg(1, 3, ^uint32(0))), set(ofp.Reg(0, 2, 15))), ofp.GotoTable(10))},
		{"table=0,priority=190,in_port=3,vlan_tci=0x1000/0x1000 actions=drop",
			flowOf(0, 190, ofp.Match{ofp.InPort(3), ofp.VLANTagged()})},
		{"table=0,priority=1,in_port=LOCAL actions=IN_PORT", flowOf(0, 1, ofp.Match{ofp.InPort(ofp.PortLocal)}, apply(ofp.Output{Port: ofp.PortInPort}))},
		{"table=0,priority=0 actions=drop", flowOf(0, 0, nil)},
		{"table=1,priority=1,dl_vlan=10,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=pop_vlan,group:7",
			flowOf(1, 1, ofp.Match{ofp.VLANVID(10), ofp.EthDstMasked(mcast, mcast)}, apply(ofp.PopVLAN{}, ofp.Group{ID: 7}))},
		{"table=1,priority=2,dl_dst=0a:58:0a:0a:00:01 actions=push_vlan:0x8100,set_field:4106->vlan_vid,output:NXM_NX_REG1[]",
			flowOf(1, 2, ofp.Match{ofp.EthDst(gw)}, apply(ofp.PushVLAN{EtherType: ofp.EtherType8021Q}, set(ofp.VLANVID(10)), ofp.OutputReg{Src: whole(ofp.RegID(1)), Bits: 32}))},
		{"table=1,priority=3,vlan_vid=0x1008/0x1ff8 actions=output:NXM_NX_REG2[8..15]",
			flowOf(1, 3, ofp.Match{ofp.VLANVIDMasked(0x1008, 0x1ff8)}, apply(ofp.OutputReg{Src: ofp.Subfield{Field: ofp.RegID(2), Offset: 8}, Bits: 8}))},
		{"table=1,priority=4,vlan_tci=0x1005/0x1fff actions=output:9", flowOf(1, 4, ofp.Match{ofp.VLANTCI(0x1005, 0x1fff)}, apply(ofp.Output{Port: 9}))},
		{"table=10,priority=210,arp,in_port=3,arp_op=1,arp_spa=10.10.0.3,arp_sha=0a:58:0a:0a:00:03,arp_tpa=10.10.0.0/16 actions=goto_table:20",
			flowOf(10, 210, ofp.Match{ofp.EthType(arp), ofp.InPort(3), ofp.ARPOp(1), ofp.ARPSPA(host4), ofp.ARPSHA(mac), ofp.ARPTPA(pfx("10.10.0.0/16"))}, ofp.GotoTable(20))},
		{"table=20,priority=200,arp,arp_op=1,arp_tpa=10.10.0.3 actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],set_field:0a:58:0a:0a:00:03->eth_src," +
			"set_field:2->arp_op,move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],set_field:0a:58:0a:0a:00:03->arp_sha,move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:10.10.0.3->arp_spa,IN_PORT",
			flowOf(20, 200, ofp.Match{ofp.EthType(arp), ofp.ARPOp(1), ofp.ARPTPA(host4)}, apply(move(ofp.FieldEthSrc, ofp.FieldEthDst, 48), set(ofp.EthSrc(mac)),
				set(ofp.ARPOp(2)), move(ofp.FieldARPSHA, ofp.FieldARPTHA, 48), set(ofp.ARPSHA(mac)), move(ofp.FieldARPSPA, ofp.FieldARPTPA, 32), set(ofp.ARPSPA(host4)), ofp.Output{Port: ofp.PortInPort}))},
		{"table=20,priority=210,arp,arp_tha=0a:58:0a:0a:00:01 actions=output:4", flowOf(20, 210, ofp.Match{ofp.EthType(arp), ofp.ARPTHA(gw)}, apply(ofp.Output{Port: 4}))},
		{"table=10,priority=200,ip,in_port=3,nw_src=10.10.0.3,nw_dst=10.96.0.0/12 actions=goto_table:30",
			flowOf(10, 200, ofp.Match{ofp.InPort(3), ofp.EthType(ip4), ofp.IPv4Src(host4), ofp.IPv4Dst(pfx("10.96.0.0/12"))}, ofp.GotoTable(30))},
		{"table=10,priority=200,ipv6,in_port=3,ipv6_src=fd00:10::3,ipv6_dst=fe80::/10 actions=goto_table:30",
			flowOf(10, 200, ofp.Match{ofp.InPort(3), ofp.EthType(ip6), ofp.IPv6Src(host6), ofp.IPv6Dst(pfx("fe80::/10"))}, ofp.GotoTable(30))},
		{"table=10,priority=220,udp,in_port=3,tp_src=67,tp_dst=68 actions=drop",
			flowOf(10, 220, ofp.Match{ofp.InPort(3), ofp.EthType(ip4), ofp.IPProto(17), ofp.UDPSrc(67), ofp.UDPDst(68)})},
		{"table=10,priority=220,tcp6,tp_src=1,tp_dst=2 actions=drop",
			flowOf(10, 220, ofp.Match{ofp.EthType(ip6), ofp.IPProto(6), ofp.TCPSrc(1), ofp.TCPDst(2)})},
		{"table=10,priority=220,icmp,icmp_type=8,icmp_code=0,nw_ttl=64 actions=set_field:0->icmp_type,set_field:3->nw_ttl",
			flowOf(10, 220, ofp.Match{ofp.EthType(ip4), ofp.IPProto(1), ofp.ICMPv4Type(8), ofp.ICMPv4Code(0), ofp.IPTTL(64)}, apply(set(ofp.ICMPv4Type(0)), set(ofp.IPTTL(3))))},
		{"table=10,priority=221,ip,nw_proto=132 actions=drop", flowOf(10, 221, ofp.Match{ofp.EthType(ip4), ofp.IPProto(132)})},
		{"table=10,priority=221,ip,nw_proto=2 actions=drop", flowOf(10, 221, ofp.Match{ofp.EthType(ip4), ofp.IPProto(2)})},
		{"table=10,priority=230,icmp6,in_port=3,icmp_type=135,icmp_code=0,nd_target=fd00:10::3,nd_sll=0a:58:0a:0a:00:03 actions=goto_table:20",
			flowOf(10, 230, ofp.Match{ofp.InPort(3), ofp.EthType(ip6), ofp.IPProto(58), ofp.ICMPv6Type(135), ofp.ICMPv6Code(0), ofp.NDTarget(host6.Addr()), ofp.NDSLL(mac)}, ofp.GotoTable(20))},
		{"table=20,priority=200,icmp6,icmp_type=135,icmp_code=0,nd_target=fd00:10::3 actions=set_field:136->icmpv6_type,set_field:2->nd_options_type,set_field:0x60000000->nd_reserved,resubmit(,21)",
			flowOf(20, 200, ofp.Match{ofp.EthType(ip6), ofp.IPProto(58), ofp.ICMPv6Type(135), ofp.ICMPv6Code(0), ofp.NDTarget(host6.Addr())},
				apply(set(ofp.ICMPv6Type(136)), set(ofp.NDOptionsType(2)), set(ofp.NDReserved(0x60000000)), ofp.Resubmit{Table: 21}))},
		{"table=21,priority=200,icmp6,icmp_type=136,nd_tll=0a:58:0a:0a:00:01,nd_reserved=0x60000000,nd_options_type=2 actions=set_field:0a:58:0a:0a:00:03->nd_tll,set_field:fd00:10::3->nd_target,set_field:fd00:10::3->ipv6_src",
			flowOf(21, 200, ofp.Match{ofp.EthType(ip6), ofp.IPProto(58), ofp.ICMPv6Type(136), ofp.NDTLL(gw), ofp.NDReserved(0x60000000), ofp.NDOptionsType(2)},
				apply(set(ofp.NDTLL(mac)), set(ofp.NDTarget(host6.Addr())), set(ofp.IPv6Src(host6))))},
		{"table=21,priority=201,icmp6,icmp_type=135,icmp_code=0 actions=set_field:0a:58:0a:0a:00:03->nd_sll", flowOf(21, 201,
			ofp.Match{ofp.EthType(ip6), ofp.IPProto(58), ofp.ICMPv6Type(135), ofp.ICMPv6Code(0)}, apply(set(ofp.NDSLL(mac))))},
		{"table=30,priority=200,ip actions=ct(table=31,zone=65520)", flowOf(30, 200, ofp.Match{ofp.EthType(ip4)}, apply(ofp.CT{Zone: 65520, Table: 31}))},
		{"table=30,priority=200,ipv6 actions=ct(table=31,zone=NXM_NX_REG4[0..15])", flowOf(30, 200, ofp.Match{ofp.EthType(ip6)}, apply(ofp.CT{ZoneSrc: whole(ofp.RegID(4)), Table: 31}))},
		{"table=31,priority=200,ct_state=+new+trk,ip,reg0=0x1/0xf actions=ct(commit,zone=65520,exec(set_field:0x1/0x1->ct_mark)),goto_table:40",
			flowOf(31, 200, ofp.Match{ofp.CTState(ofp.CTNew|ofp.CTTracked, ofp.CTNew|ofp.CTTracked), ofp.EthType(ip4), ofp.Reg(0, 1, 15)},
				apply(ofp.CT{Commit: true, Zone: 65520, Table: ofp.TableNone, Exec: []ofp.Action{set(ofp.CTMark(1, 1))}}), ofp.GotoTable(40))},
		{"table=31,priority=201,ct_state=+est+trk,ip,ct_zone=65520 actions=ct(commit,force)",
			flowOf(31, 201, ofp.Match{ofp.CTState(ofp.CTEstablished|ofp.CTTracked, ofp.CTEstablished|ofp.CTTracked), ofp.EthType(ip4), ofp.CTZone(65520)}, apply(ofp.CT{Commit: true, Force: true, Table: ofp.TableNone}))},
		{"table=31,priority=202,ct_state=-new+est-rel+rpl-inv+trk,ip,ct_mark=0x1/0x1 actions=ct_clear,dec_ttl,resubmit(5,40)",
			flowOf(31, 202, ofp.Match{ofp.CTState(ofp.CTEstablished|ofp.CTReply|ofp.CTTracked, 0x3f), ofp.EthType(ip4), ofp.CTMark(1, 1)}, apply(ofp.CTClear{}, ofp.DecTTL{}, ofp.Resubmit{InPort: 5, Table: 40}))},
		{"table=31,priority=203,ip,ct_mark=5 actions=set_field:0a:58:0a:0a:00:01->eth_dst", flowOf(31, 203, ofp.Match{ofp.EthType(ip4), ofp.CTMark(5, ^uint32(0))}, apply(set(ofp.EthDst(gw))))},
		{"table=40,priority=200,reg0=0x100/0x100,reg1=5,reg2=0x7/0xf,reg15=0xffffffff,pkt_mark=3 actions=set_field:0x10/0xf0->reg15,CONTROLLER:65535,CONTROLLER:128,LOCAL,NORMAL,FLOOD,ALL",
			flowOf(40, 200, ofp.Match{ofp.Reg(0, 0x100, 0x100), ofp.Reg(1, 5, ^uint32(0)), ofp.Reg(2, 7, 15), ofp.Reg(15, ^uint32(0), ^uint32(0)), ofp.PktMark(3, ^uint32(0))},
				apply(set(ofp.Reg(15, 0x10, 0xf0)), ofp.Output{Port: ofp.PortController}, ofp.Output{Port: ofp.PortController, MaxLen: 128}, ofp.Output{Port: ofp.PortLocal},
					ofp.Output{Port: ofp.PortNormal}, ofp.Output{Port: ofp.PortFlood}, ofp.Output{Port: ofp.PortAll}))},
		{"table=41,priority=1,in_port=1 actions=set_field:5->reg1,clear_actions,write_actions(output:1),write_metadata:0x5/0xff,goto_table:42",
			flowOf(41, 1, ofp.Match{ofp.InPort(1)}, ofp.GotoTable(42), ofp.WriteMetadata{Metadata: 5, Mask: 0xff}, ofp.WriteActions{ofp.Output{Port: 1}}, ofp.ClearActions{}, apply(set(ofp.Reg(1, 5, ^uint32(0)))))},
		{"table=41,priority=2,in_port=1,ip actions=move:NXM_NX_REG0[0..15]->NXM_NX_REG1[16..31],move:NXM_OF_IP_SRC[]->NXM_NX_REG2[],set_field:10.0.0.1->ip_dst",
			flowOf(41, 2, ofp.Match{ofp.InPort(1), ofp.EthType(ip4)}, apply(ofp.CopyField{Src: whole(ofp.RegID(0)), Dst: ofp.Subfield{Field: ofp.RegID(1), Offset: 16}, Bits: 16},
				move(ofp.FieldIPv4Src, ofp.RegID(2), 32), set(ofp.IPv4Dst(pfx("10.0.0.1/32")))))},
		{"table=42,priority=7,cookie=0x1234,idle_timeout=10,hard_timeout=20,importance=3,send_flow_rem,no_packet_counts,no_byte_counts actions=drop",
			ofp.FlowMod{Table: 42, Priority: 7, Cookie: 0x1234, IdleTimeout: 10, HardTimeout: 20, Importance: 3, Flags: ofp.FlagSendFlowRemoved | ofp.FlagNoPacketCounts | ofp.FlagNoByteCounts}},
		{"table=42,priority=8,check_overlap,reset_counts,in_port=9 actions=output:1",
			ofp.FlowMod{Table: 42, Priority: 8, Flags: ofp.FlagCheckOverlap | ofp.FlagResetCounts, Match: ofp.Match{ofp.InPort(9)}, Instructions: ofp.Apply(ofp.Output{Port: 1})}},
	}
}
