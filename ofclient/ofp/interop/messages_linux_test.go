package interop

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// TestEveryMessageIsReadByOVS prints one message of every kind that we encode
// with ovs-ofctl and compares the whole text.
func TestEveryMessageIsReadByOVS(t *testing.T) {
	port := ofp.PortDesc{
		Number: 7, HWAddr: [6]byte{0x0a, 0x58, 0, 0, 0, 7}, Name: "pod-0123456789a", Config: ofp.PortConfigNoFwd,
		State: ofp.PortStateLive, Ethernet: ofp.PortEthernet{Current: 0x840, CurrentSpeed: 10_000_000, MaxSpeed: 40_000_000},
	}
	const portText = `7(pod-0123456789a): addr:0a:58:00:00:00:07
     config:     NO_FWD
     state:      LIVE
     current:    10GB-FD COPPER
     speed: 10000 Mbps now, 40000 Mbps max`
	flow := flowOf(3, 9, ofp.Match{ofp.InPort(3)}, ofp.GotoTable(4))
	open := ofp.BundleControl{BundleID: 9, Kind: ofp.BundleOpenRequest, Flags: ofp.BundleAtomic | ofp.BundleOrdered}
	cases := []struct {
		m    ofp.Message
		want string
	}{
		{&ofp.Hello{Versions: []uint8{1, 4, 6}}, "OFPT_HELLO (OF1.5) (xid=0x5):\n version bitmap: 0x01, 0x04, 0x06"},
		{&ofp.Hello{}, "OFPT_HELLO (OF1.5) (xid=0x5):\n version bitmap: 0x06"},
		{&ofp.EchoRequest{Data: []byte("abc")}, "OFPT_ECHO_REQUEST (OF1.5) (xid=0x5): 3 bytes of payload\n00000000  61 62 63                                        |abc             |"},
		{&ofp.EchoReply{}, "OFPT_ECHO_REPLY (OF1.5) (xid=0x5): 0 bytes of payload"},
		{&ofp.Error{ErrType: ofp.ErrTypeBundleFailed, Code: ofp.ErrBundleTimeout, Data: encode(t, 6, &open)},
			"OFPT_ERROR (OF1.5) (xid=0x5): OFPBFC_TIMEOUT\nOFPT_BUNDLE_CONTROL (OF1.5) (xid=0x6):\n bundle_id=0x9 type=OPEN_REQUEST flags=atomic ordered"},
		{&ofp.FeaturesRequest{}, "OFPT_FEATURES_REQUEST (OF1.5) (xid=0x5):"},
		{&ofp.FeaturesReply{DatapathID: 0xa58000001, Tables: 254, Capabilities: 0x4f},
			"OFPT_FEATURES_REPLY (OF1.5) (xid=0x5): dpid:0000000a58000001\nn_tables:254, n_buffers:0\ncapabilities: FLOW_STATS TABLE_STATS PORT_STATS GROUP_STATS QUEUE_STATS"},
		{&ofp.SetConfig{MissSendLen: 128}, "OFPT_SET_CONFIG (OF1.5) (xid=0x5): frags=normal miss_send_len=128"},
		{&ofp.PortStatus{Reason: ofp.PortAdded, Desc: port}, "OFPT_PORT_STATUS (OF1.5) (xid=0x5): ADD: " + portText},
		{&ofp.PortStatus{Reason: ofp.PortDeleted, Desc: port}, "OFPT_PORT_STATUS (OF1.5) (xid=0x5): DEL: " + portText},
		{&ofp.PortStatus{Reason: ofp.PortModified, Desc: port}, "OFPT_PORT_STATUS (OF1.5) (xid=0x5): MOD: " + portText},
		{&ofp.PortDescRequest{}, "OFPST_PORT_DESC request (OF1.5) (xid=0x5): port=ANY"},
		{&ofp.PortDescRequest{Port: 3}, "OFPST_PORT_DESC request (OF1.5) (xid=0x5): port=3"},
		{&ofp.PortDescReply{Ports: []ofp.PortDesc{port}}, "OFPST_PORT_DESC reply (OF1.5) (xid=0x5):\n " + portText},
		{&ofp.FlowStatsRequest{Table: ofp.TableAll}, "OFPST_FLOW request (OF1.5) (xid=0x5):"},
		{&ofp.FlowStatsRequest{Table: 3, OutPort: 4, Cookie: 5, CookieMask: 7, Match: ofp.Match{ofp.InPort(3)}},
			"OFPST_FLOW request (OF1.5) (xid=0x5): table=3 out_port=4 in_port=3"},
		{&ofp.FlowStatsReply{More: true, Flows: []ofp.FlowStats{{Table: 3, Priority: 9, Cookie: 0x10, Duration: 1500 * time.Millisecond, IdleAge: 2 * time.Second,
			Packets: 7, Bytes: 700, Match: ofp.Match{ofp.InPort(3)}, Instructions: ofp.Apply(ofp.Output{Port: 2})}}},
			"OFPST_FLOW reply (OF1.5) (xid=0x5): flags=[more]\n cookie=0x10, duration=1.500s, table=3, n_packets=7, n_bytes=700, idle_age=2, priority=9,in_port=3 actions=output:2"},
		{&flow, "OFPT_FLOW_MOD (OF1.5) (xid=0x5): ADD table:3 priority=9,in_port=3 actions=goto_table:4"},
		{&ofp.BarrierRequest{}, "OFPT_BARRIER_REQUEST (OF1.5) (xid=0x5):"},
		{&ofp.BarrierReply{}, "OFPT_BARRIER_REPLY (OF1.5) (xid=0x5):"},
		{&open, "OFPT_BUNDLE_CONTROL (OF1.5) (xid=0x5):\n bundle_id=0x9 type=OPEN_REQUEST flags=atomic ordered"},
		{&ofp.BundleAdd{BundleID: 9, Flags: ofp.BundleOrdered, Inner: &flow},
			"OFPT_BUNDLE_ADD_MESSAGE (OF1.5) (xid=0x5):\n bundle_id=0x9 flags=ordered\nOFPT_FLOW_MOD (OF1.5) (xid=0x5): ADD table:3 priority=9,in_port=3 actions=goto_table:4"},
		{&ofp.CTFlush{Zone: 0xfff0, Orig: ofp.CTTuple{Src: netip.MustParseAddr("10.10.0.3")}},
			"NXT_CT_FLUSH (OF1.5) (xid=0x5): zone=65520 'ct_nw_src=10.10.0.3,ct_nw_dst=::,ct_tp_src=0,ct_tp_dst=0,ct_nw_proto=0' 'ct_nw_src=::,ct_nw_dst=::,ct_tp_src=0,ct_tp_dst=0'"},
		{&ofp.CTFlush{AllZones: true, Proto: 6, Orig: ofp.CTTuple{Src: netip.MustParseAddr("fd00::3"), Dst: netip.MustParseAddr("fd00::4"), SrcPort: 5, DstPort: 80}},
			"NXT_CT_FLUSH (OF1.5) (xid=0x5): zone=0 'ct_ipv6_src=fd00::3,ct_ipv6_dst=fd00::4,ct_tp_src=5,ct_tp_dst=80,ct_nw_proto=6' 'ct_ipv6_src=::,ct_ipv6_dst=::,ct_tp_src=0,ct_tp_dst=0'"},
		{&ofp.GetAsyncRequest{}, "OFPT_GET_ASYNC_REQUEST (OF1.5) (xid=0x5):"},
		{ofp.PortStatusOnly(), ""},
	}
	// ovs-ofctl does not print the cookie of a request, and prints zone=0 for no
	// zone; TestGolden compares those bytes.
	var frames [][]byte
	for _, c := range cases {
		frames = append(frames, encode(t, 5, c.m))
	}
	for i, got := range ovsText(t, frames) {
		if cases[i].want == "" {
			checkAsyncText(t, got)
			continue
		}
		if got != cases[i].want {
			t.Errorf("%s: ovs-ofctl prints\n%q\nwant\n%q", cases[i].m.Type(), got, cases[i].want)
		}
	}
}

// checkAsyncText: port status on, for every role, and nothing else.
func checkAsyncText(t *testing.T, text string) {
	t.Helper()
	on := 0
	for line := range strings.Lines(text) {
		what, reasons, ok := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case !ok:
		case what == "PORT_STATUS":
			on++
			if reasons != "add delete modify" {
				t.Errorf("port status %q", reasons)
			}
		case !strings.HasPrefix(what, "OFPT_") && reasons != "(off)":
			t.Errorf("%s is %q", what, reasons)
		}
	}
	if on != 2 {
		t.Errorf("port status is mentioned %d times:\n%s", on, text)
	}
}

// TestAsyncSelection: after PortStatusOnly the switch says that it sends port
// status, a port brings one event, and a packet to the controller brings none.
func TestAsyncSelection(t *testing.T) {
	sw := startBridge(t)
	s := dial(t, sw.MgmtSock(bridge))
	asked := func() map[ofp.AsyncType]uint32 {
		s.send(&ofp.GetAsyncRequest{})
		masks := make(map[ofp.AsyncType]uint32)
		for _, p := range s.recv().(*ofp.GetAsyncReply).Props {
			masks[p.Type] = p.Mask
		}
		return masks
	}
	before := asked()
	s.send(ofp.PortStatusOnly())
	after := asked()
	t.Logf("before %v, after %v", before, after)
	for typ, mask := range after {
		want := uint32(0)
		if typ == ofp.AsyncPortStatus || typ == ofp.AsyncPortStatusSecondary {
			want = 7
		}
		if mask != want {
			t.Errorf("async %d: %#x, want %#x", typ, mask, want)
		}
	}
	if got := s.barrier(); len(got) != 0 {
		t.Errorf("before the port: %v", got)
	}
	flow := flowOf(0, 0, nil, apply(ofp.Output{Port: ofp.PortController}))
	install(t, s, []ofp.FlowMod{flow})
	if _, err := sw.Vsctl("add-port", bridge, "p9", "--", "set", "interface", "p9", "type=internal", "ofport_request=9"); err != nil {
		t.Fatal(err)
	}
	if _, err := sw.Ofctl("packet-out", "unix:"+sw.MgmtSock(bridge), "in_port=9 packet=ffffffffffff0a580000000908060001 actions=TABLE"); err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, m := range s.barrier() {
		p, ok := m.(*ofp.PortStatus)
		if !ok {
			t.Errorf("%s came without being asked for", m.Type())
		} else if p.Desc.Number != 9 || p.Desc.Name != "p9" {
			t.Errorf("port status of %+v", p.Desc)
		} else {
			events++
		}
	}
	if events == 0 {
		t.Error("no port status came")
	}
}
