package interop

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// ofctlFlows are flows in ovs-ofctl's words: the kinds that the pipeline uses,
// and many that the codec has no type for.
var ofctlFlows = []string{
	"table=0,priority=200,in_port=3,dl_src=0a:58:0a:0a:00:03,vlan_tci=0x0000/0x1fff,actions=set_field:3->reg1,set_field:2/0xf->reg0,goto_table:10",
	"table=0,priority=190,in_port=3,vlan_tci=0x1000/0x1000,actions=drop",
	"table=0,priority=1,dl_vlan=10,dl_vlan_pcp=3,actions=strip_vlan,output:4",
	"table=1,priority=2,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=push_vlan:0x8100,set_field:4106->vlan_vid,output:NXM_NX_REG1[]",
	"table=10,arp,arp_op=1,arp_spa=10.10.0.3,arp_sha=0a:58:0a:0a:00:03,arp_tpa=10.10.0.0/16,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],set_field:2->arp_op,move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],IN_PORT",
	"table=10,icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::3,nd_sll=0a:58:0a:0a:00:03,actions=set_field:136->icmpv6_type,set_field:2->nd_options_type,set_field:0x60000000->nd_reserved,resubmit(,21)",
	"table=21,icmp6,icmp_type=136,nd_reserved=5,nd_options_type=2,nd_tll=0a:58:0a:0a:00:03,actions=set_field:0a:58:0a:0a:00:01->nd_tll,set_field:fd00::1->nd_target",
	"table=30,ip,nw_src=10.10.0.3,nw_dst=10.0.0.0/8,nw_ttl=3,nw_tos=32,nw_ecn=1,ip_frag=later,actions=ct(table=31,zone=65520)",
	"table=30,ipv6,ipv6_src=fd00::3,ipv6_dst=fd00::/64,ipv6_label=5,actions=ct(table=31,zone=NXM_NX_REG4[0..15])",
	"table=31,ct_state=+new+trk,ip,reg0=1/0xf,actions=ct(commit,force,zone=65520,exec(set_field:0x1/0x1->ct_mark)),goto_table:40",
	"table=31,ct_state=-new+est+trk,ct_mark=1/1,ct_zone=65520,ip,actions=ct_clear,dec_ttl,resubmit(5,40)",
	"table=31,tcp,tp_dst=80,tp_src=0x400/0xfc00,tcp_flags=+syn-ack,actions=group:1",
	"table=31,udp6,tp_src=547,actions=clear_actions,write_actions(output:1),write_metadata:0x5/0xff",
	"table=31,reg0=1,reg1=2/2,reg3=4,reg15=0xffffffff,actions=controller(max_len=65535),LOCAL,NORMAL,FLOOD,ALL",
	"table=31,metadata=5/7,tun_id=9,pkt_mark=3,conj_id=4,actions=set_field:7/15->pkt_mark,set_field:5->metadata,output:NXM_NX_REG2[0..7]",
	// What the codec keeps as it is.
	"table=90,priority=1,actions=note:01.02.03.04.05.06.07.08.09",
	"table=90,priority=2,actions=learn(table=91,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])",
	"table=90,priority=3,ip,actions=ct(commit,nat(src=10.0.0.1-10.0.0.9:1-100)),ct(nat)",
	"table=90,priority=4,tcp,actions=conjunction(4,1/2)",
	"table=90,priority=5,actions=clone(set_field:1->reg1,output:1),sample(probability=5,collector_set_id=1)",
	"table=90,priority=6,actions=controller(userdata=01.02,pause),set_queue:3,output(port=1,max_len=100)",
	"table=90,priority=7,actions=multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[]),bundle(eth_src,0,active_backup,ofport,members:1,2)",
	"table=90,priority=8,actions=check_pkt_larger(1500)->NXM_NX_REG0[0],push:NXM_NX_REG1[],pop:NXM_NX_REG2[]",
	"table=90,priority=9,idle_timeout=100,hard_timeout=200,importance=5,cookie=0x1234,send_flow_rem,no_packet_counts,no_byte_counts,actions=drop",
	"table=90,priority=10,mpls,mpls_label=5,actions=pop_mpls:0x0800,output:1",
	"table=90,priority=11,ct_label=0x123/0xfff,ip,actions=ct(commit,exec(set_field:0x5->ct_label)),dec_ttl(1,2)",
}

// capture makes the switch and ovs-ofctl speak and returns what each said, by subject.
func capture(t *testing.T, sw *vswitchtest.Switch) map[string][][]byte {
	t.Helper()
	golden := make(map[string][][]byte)
	s := dial(t, sw.MgmtSock(bridge))
	mark := func(name string) { golden[name], s.frames = append(golden[name], s.frames...), nil }
	s.send(&ofp.FeaturesRequest{})
	s.recv()
	s.send(&ofp.EchoRequest{Data: []byte("ping")})
	s.recv()
	s.send(ofp.PortStatusOnly())
	s.send(&ofp.GetAsyncRequest{})
	s.recv()
	mark("session")

	for _, args := range [][]string{
		{"add-port", bridge, "p1", "--", "set", "interface", "p1", "type=internal", "ofport_request=1"},
		{"add-port", bridge, "late-netdev"}, // no device: no event, and no number
		{"add-port", bridge, "p2", "--", "set", "interface", "p2", "type=internal", "ofport_request=2"},
		{"del-port", bridge, "p2"},
	} {
		// A port without a device makes ovs-vsctl complain, that is its point.
		if _, err := sw.Vsctl(args...); err != nil && args[2] != "late-netdev" {
			t.Fatal(err)
		}
	}
	s.until(func(m ofp.Message) bool {
		p, ok := m.(*ofp.PortStatus)
		return ok && p.Reason == ofp.PortDeleted && p.Desc.Name == "p2"
	})
	s.send(&ofp.PortDescRequest{})
	s.until(func(m ofp.Message) bool { r, ok := m.(*ofp.PortDescReply); return ok && !r.More })
	mark("ports")

	r := startRelay(t, sw.MgmtSock(bridge))
	to := "unix:" + r.path
	run := func(args ...string) {
		if out, err := sw.Ofctl(append([]string{"--no-names"}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run("add-group", to, "group_id=1,type=all,bucket=output:1")
	r.take(t)
	for _, f := range ofctlFlows {
		run("add-flow", to, f)
	}
	run("--strict", "mod-flows", to, "table=90,priority=9,cookie=0x1234/0xffff,actions=output:1")
	run("--strict", "del-flows", to, "table=99,priority=9,in_port=7,out_port=5,out_group=4")
	run("del-flows", to, "cookie=0x77/-1,ip")
	golden["ofctl-flow-mod"], _ = r.take(t)

	file := filepath.Join(t.TempDir(), "flows")
	if err := os.WriteFile(file, []byte(strings.Join(ofctlFlows[:5], "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	run("--bundle", "add-flows", to, file)
	up, down := r.take(t)
	golden["ofctl-bundle"], golden["bundle"] = up, down
	run("dump-flows", to, "table=31,ip,cookie=0/1")
	run("dump-ports-desc", to)
	golden["ofctl-multipart"], _ = r.take(t)
	for _, args := range [][]string{
		{"zone=5"},
		{"zone=5", "ct_nw_src=10.10.0.3"},
		{"zone=0", "ct_nw_src=10.10.0.3,ct_nw_dst=10.10.0.4,ct_nw_proto=6,ct_tp_src=1,ct_tp_dst=80", "ct_nw_dst=10.10.0.3"},
		{"ct_ipv6_src=fd00::3,ct_nw_proto=58,icmp_type=8,icmp_code=0,icmp_id=7"},
	} {
		run(append([]string{"ct-flush", to}, args...)...)
	}
	golden["ofctl-ct-flush"], _ = r.take(t)
	r.stop()

	s.flows()
	mark("flows")
	provoke(s)
	mark("errors")
	return golden
}

// provoke makes the switch refuse things.
func provoke(s *session) {
	flow := ofp.FlowMod{Match: ofp.Match{ofp.InPort(1)}}
	bad := []ofp.Message{
		&ofp.FlowMod{Instructions: ofp.Apply(ofp.Group{ID: 999})},
		&ofp.FlowMod{Instructions: ofp.Apply(ofp.Output{Port: 0xffffff01})},
		&ofp.FlowMod{Table: 5, Instructions: []ofp.Instruction{ofp.GotoTable(3)}},
		&ofp.FlowMod{Match: ofp.Match{ofp.TCPDst(80)}},
		&ofp.FlowMod{Match: ofp.Match{ofp.EthType(0x0806)}, Instructions: ofp.Apply(ofp.SetField(ofp.NDTLL([6]byte{2})))},
		&ofp.FlowMod{Instructions: ofp.Apply(ofp.SetField(ofp.InPort(1)))},
		&ofp.FlowMod{Instructions: []ofp.Instruction{ofp.RawInstruction{InstructionType: 77, Body: make([]byte, 4)}}},
		&ofp.FlowMod{Instructions: ofp.Apply(ofp.RawAction{Data: []byte{0, 99, 0, 8, 0, 0, 0, 0}})},
		&ofp.BundleControl{BundleID: 9, Kind: ofp.BundleCommitRequest},
		&ofp.BundleControl{BundleID: 9, Kind: 99},
		&ofp.Unknown{MessageType: 99},
		&ofp.Unknown{MessageType: ofp.TypeExperimenter, Body: []byte{0, 0, 0x23, 0x20, 0, 0, 0xff, 0xff}},
		&ofp.Unknown{MessageType: ofp.TypeMultipartRequest, Body: []byte{0, 99, 0, 0, 0, 0, 0, 0}},
		&ofp.Unknown{MessageType: ofp.TypeSetConfig, Body: []byte{1}},
		&ofp.BundleControl{BundleID: 8, Kind: ofp.BundleOpenRequest, Flags: ofp.BundleOrdered},
		&ofp.BundleAdd{BundleID: 8, Flags: ofp.BundleOrdered, Inner: &flow},
		&ofp.BundleAdd{BundleID: 8, Flags: ofp.BundleOrdered, Inner: &ofp.EchoRequest{}},
		&ofp.BundleControl{BundleID: 8, Kind: ofp.BundleDiscardRequest, Flags: ofp.BundleOrdered},
		&ofp.CTFlush{Proto: 6, Orig: ofp.CTTuple{Src: netip.MustParseAddr("10.0.0.1")}},
	}
	for _, m := range bad {
		s.send(m)
	}
	s.barrier()
}

// TestGolden captures frames from ovs-ofctl and the switch and holds the codec
// against them: every frame decodes, and encodes to the very same bytes.
func TestGolden(t *testing.T) {
	golden := capture(t, startBridge(t))
	kinds := make(map[string]int)
	for name, frames := range golden {
		if len(frames) == 0 {
			t.Errorf("%s: nothing was captured", name)
		}
		for i, frame := range frames {
			xid, m, err := ofp.Decode(frame)
			if err != nil {
				t.Errorf("%s %d: %v\n%x", name, i, err, frame)
				continue
			}
			kinds[fmt.Sprintf("%T", m)]++
			if again := encode(t, xid, m); !bytes.Equal(frame, again) {
				texts := ovsText(t, [][]byte{frame, again})
				t.Errorf("%s %d (%T) changed:\n%x\n%x\n%s\n%s", name, i, m, frame, again, texts[0], texts[1])
			}
			if e, ok := m.(*ofp.Error); ok {
				if text := ovsText(t, [][]byte{frame})[0]; !strings.Contains(text, e.String()) {
					t.Errorf("error %s, ovs-ofctl says %s", e, text)
				}
			}
		}
	}
	t.Logf("captured: %v", kinds)
	for _, kind := range []string{"Hello", "FeaturesReply", "EchoReply", "GetAsyncReply", "PortStatus", "PortDescReply", "FlowMod", "FlowStatsReply",
		"FlowStatsRequest", "PortDescRequest", "BundleControl", "BundleAdd", "BarrierReply", "Error", "CTFlush"} {
		if kinds["*ofp."+kind] == 0 {
			t.Errorf("no %s was captured", kind)
		}
	}
	if *update {
		for name, frames := range golden {
			writeGolden(t, name, frames)
		}
	}
}

func writeGolden(t *testing.T, name string, frames [][]byte) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# Captured from Open vSwitch by TestGolden in ofclient/ofp/interop. Above each frame: what ovs-ofctl prints.\n")
	texts := ovsText(t, frames)
	seen := make(map[string]bool)
	for i, f := range frames {
		if line := hex.EncodeToString(f); !seen[line] {
			seen[line] = true
			fmt.Fprintf(&b, "\n# %s\n%s\n", strings.ReplaceAll(texts[i], "\n", "\n# "), line)
		}
	}
	if err := os.WriteFile(filepath.Join("../testdata/golden", name+".hex"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
