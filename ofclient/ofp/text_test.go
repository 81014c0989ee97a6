package ofp

import (
	"testing"
	"time"
)

// The text of what the pipeline uses is compared with ovs-ofctl's in package
// interop; here is what the switch cannot be asked about.
func TestFieldText(t *testing.T) {
	for want, f := range map[string]Field{
		"in_port=LOCAL":                           InPort(PortLocal),
		"ct_state=+new-est+trk":                   CTState(CTNew|CTTracked, CTNew|CTEstablished|CTTracked),
		"ct_state=new|trk":                        CTState(CTNew|CTTracked, ^uint32(0)),
		"ct_state=0x1/0x1ff":                      CTState(CTNew, 0x1ff),
		"nw_frag=later":                           NewField(FieldIPFrag, []byte{3}, nil),
		"nw_frag=no":                              NewField(FieldIPFrag, []byte{0}, []byte{1}),
		"nw_src=10.0.1.0/255.0.255.0":             NewField(FieldIPv4Src, []byte{10, 0, 1, 0}, []byte{255, 0, 255, 0}),
		"tcp_flags=+syn-ack":                      NewField(FieldTCPFlags, []byte{0, 2}, []byte{0, 0x12}),
		"ct_label=0x1/0xff":                       NewField(FieldCTLabel, append(make([]byte, 15), 1), append(make([]byte, 15), 0xff)),
		"tp_dst=0x50/0xf0":                        NewField(FieldTCPDst, []byte{0, 0x50}, []byte{0, 0xf0}),
		"vlan_tci=0x3005/0x3fff":                  VLANTCI(0x3005, 0x3fff),
		"bad field: vlan_vid: 5000 is no VLAN id": VLANVID(5000),
		"field 0x1:40/2=0x102":                    NewField(nxm1|40<<41|2<<32, []byte{1, 2}, nil),
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFlowText(t *testing.T) {
	f := FlowStats{Table: 3, Priority: 9, Cookie: 0x10, Duration: 1500 * time.Millisecond, IdleAge: 2 * time.Second, Packets: 7, Bytes: UnknownCount,
		Match: Match{InPort(3), EthType(0x0800), IPProto(6), TCPDst(80)}, Instructions: Apply(RawAction{Data: []byte{0, 99, 0, 8, 0, 0, 0, 1}})}
	const want = "cookie=0x10, duration=1.500s, table=3, n_packets=7, idle_age=2, priority=9,in_port=3,tcp,tp_dst=80 actions=raw_action:0063000800000001"
	if got := f.String(); got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
	m := FlowMod{Command: FlowDelete, Table: TableAll, Cookie: 0x5e00, CookieMask: 0xff00}
	if got, want := m.String(), "delete cookie=0x5e00/0xff00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		TypePortStatus.String():                      "PORT_STATUS",
		Type(22).String():                            "type 22",
		(PortStateLive | PortStateLinkDown).String(): "LINK_DOWN LIVE",
		PortState(0).String():                        "0",
		(PortConfigDown | 1<<20).String():            "PORT_DOWN 0x100000",
		PortDeleted.String():                         "DEL",
		PortReason(9).String():                       "reason 9",
		BundleCommitReply.String():                   "COMMIT_REPLY",
		BundleKind(9).String():                       "kind 9",
		FlowModifyStrict.String():                    "modify_strict",
		FlowCommand(9).String():                      "command 9",
		RegID(3).String():                            "reg3",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
