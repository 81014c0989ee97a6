package ofp

import "fmt"

// Version is the OpenFlow version number of 1.5 on the wire.
const Version = 6

// HeaderLen is the size in bytes of the header that starts every message.
const HeaderLen = 8

// MaxLen is the size in bytes of the longest message: the length field has 16 bits.
const MaxLen = 1<<16 - 1

// Type is an OpenFlow 1.5 message type (enum ofp_type).
type Type uint8

// The message types of OpenFlow 1.5.
const (
	TypeHello            Type = 0
	TypeError            Type = 1
	TypeEchoRequest      Type = 2
	TypeEchoReply        Type = 3
	TypeExperimenter     Type = 4
	TypeFeaturesRequest  Type = 5
	TypeFeaturesReply    Type = 6
	TypeGetConfigRequest Type = 7
	TypeGetConfigReply   Type = 8
	TypeSetConfig        Type = 9
	TypePacketIn         Type = 10
	TypeFlowRemoved      Type = 11
	TypePortStatus       Type = 12
	TypePacketOut        Type = 13
	TypeFlowMod          Type = 14
	TypeGroupMod         Type = 15
	TypePortMod          Type = 16
	TypeTableMod         Type = 17
	TypeMultipartRequest Type = 18
	TypeMultipartReply   Type = 19
	TypeBarrierRequest   Type = 20
	TypeBarrierReply     Type = 21
	TypeRoleRequest      Type = 24
	TypeRoleReply        Type = 25
	TypeGetAsyncRequest  Type = 26
	TypeGetAsyncReply    Type = 27
	TypeSetAsync         Type = 28
	TypeMeterMod         Type = 29
	TypeRoleStatus       Type = 30
	TypeTableStatus      Type = 31
	TypeRequestForward   Type = 32
	TypeBundleControl    Type = 33
	TypeBundleAdd        Type = 34
	TypeControllerStatus Type = 35
)

var typeNames = [...]string{
	TypeHello: "HELLO", TypeError: "ERROR", TypeEchoRequest: "ECHO_REQUEST", TypeEchoReply: "ECHO_REPLY",
	TypeExperimenter: "EXPERIMENTER", TypeFeaturesRequest: "FEATURES_REQUEST", TypeFeaturesReply: "FEATURES_REPLY",
	TypeGetConfigRequest: "GET_CONFIG_REQUEST", TypeGetConfigReply: "GET_CONFIG_REPLY", TypeSetConfig: "SET_CONFIG",
	TypePacketIn: "PACKET_IN", TypeFlowRemoved: "FLOW_REMOVED", TypePortStatus: "PORT_STATUS", TypePacketOut: "PACKET_OUT",
	TypeFlowMod: "FLOW_MOD", TypeGroupMod: "GROUP_MOD", TypePortMod: "PORT_MOD", TypeTableMod: "TABLE_MOD",
	TypeMultipartRequest: "MULTIPART_REQUEST", TypeMultipartReply: "MULTIPART_REPLY",
	TypeBarrierRequest: "BARRIER_REQUEST", TypeBarrierReply: "BARRIER_REPLY", TypeRoleRequest: "ROLE_REQUEST", TypeRoleReply: "ROLE_REPLY",
	TypeGetAsyncRequest: "GET_ASYNC_REQUEST", TypeGetAsyncReply: "GET_ASYNC_REPLY", TypeSetAsync: "SET_ASYNC",
	TypeMeterMod: "METER_MOD", TypeRoleStatus: "ROLE_STATUS", TypeTableStatus: "TABLE_STATUS", TypeRequestForward: "REQUESTFORWARD",
	TypeBundleControl: "BUNDLE_CONTROL", TypeBundleAdd: "BUNDLE_ADD_MESSAGE", TypeControllerStatus: "CONTROLLER_STATUS",
}

// String returns the specification's name without its OFPT_ prefix, or "type N".
func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Header is the header of every OpenFlow message.
type Header struct {
	Version uint8
	Type    Type
	Length  uint16 // of the whole message, this header included
	XID     uint32 // a reply carries the xid of its request
}

// ParseHeader reads the header at the start of b. It fails when b is shorter
// than HeaderLen or when the length field is: such a length would make a stream
// reader spin. The version is not judged, a peer's HELLO may carry any.
func ParseHeader(b []byte) (Header, error) {
	r := reader{b: b}
	h := Header{Version: r.u8("version"), Type: Type(r.u8("type")), Length: r.u16("length"), XID: r.u32("xid")}
	if r.err != nil {
		return Header{}, fmt.Errorf("OpenFlow header: %w", r.err)
	}
	if h.Length < HeaderLen {
		return Header{}, fmt.Errorf("OpenFlow header: length %d is less than the header's own %d bytes", h.Length, HeaderLen)
	}
	return h, nil
}
