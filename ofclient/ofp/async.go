package ofp

import "fmt"

// AsyncType names one kind of asynchronous message for one kind of controller
// (enum ofp_async_config_prop_type). Each kind has two numbers: the even one
// counts while the controller's role is secondary, the odd one otherwise.
type AsyncType uint16

// The asynchronous message kinds of OpenFlow 1.5 that OVS knows.
const (
	AsyncPacketInSecondary       AsyncType = 0
	AsyncPacketIn                AsyncType = 1
	AsyncPortStatusSecondary     AsyncType = 2
	AsyncPortStatus              AsyncType = 3
	AsyncFlowRemovedSecondary    AsyncType = 4
	AsyncFlowRemoved             AsyncType = 5
	AsyncRoleStatusSecondary     AsyncType = 6
	AsyncRoleStatus              AsyncType = 7
	AsyncTableStatusSecondary    AsyncType = 8
	AsyncTableStatus             AsyncType = 9
	AsyncRequestForwardSecondary AsyncType = 10
	AsyncRequestForward          AsyncType = 11
)

// AsyncProp says which reasons of one message kind are wanted: a bit per reason.
type AsyncProp struct {
	Type AsyncType
	Mask uint32
}

// SetAsync chooses which asynchronous messages the switch sends on this
// connection. Kinds that are not listed stay as they are.
type SetAsync struct{ Props []AsyncProp }

// GetAsyncRequest asks for a GetAsyncReply.
type GetAsyncRequest struct{}

// GetAsyncReply tells which asynchronous messages are sent on this connection.
type GetAsyncReply struct{ Props []AsyncProp }

// PortStatusOnly is the SetAsync that asks for every PORT_STATUS and nothing else.
func PortStatusOnly() *SetAsync {
	const all = 1<<PortAdded | 1<<PortDeleted | 1<<PortModified
	m := &SetAsync{Props: make([]AsyncProp, 0, AsyncRequestForward+1)}
	for t := AsyncPacketInSecondary; t <= AsyncRequestForward; t++ {
		p := AsyncProp{Type: t}
		if t == AsyncPortStatus || t == AsyncPortStatusSecondary {
			p.Mask = all
		}
		m.Props = append(m.Props, p)
	}
	return m
}

// Type returns TypeSetAsync.
func (*SetAsync) Type() Type { return TypeSetAsync }

// Type returns TypeGetAsyncRequest.
func (*GetAsyncRequest) Type() Type { return TypeGetAsyncRequest }

// Type returns TypeGetAsyncReply.
func (*GetAsyncReply) Type() Type { return TypeGetAsyncReply }

func (m *SetAsync) appendBody(b []byte) ([]byte, error)      { return appendAsyncProps(b, m.Props), nil }
func (*GetAsyncRequest) appendBody(b []byte) ([]byte, error) { return b, nil }
func (m *GetAsyncReply) appendBody(b []byte) ([]byte, error) {
	return appendAsyncProps(b, m.Props), nil
}

func (m *SetAsync) decodeBody(_ Header, r *reader) (err error) {
	m.Props, err = decodeAsyncProps(r)
	return err
}

func (*GetAsyncRequest) decodeBody(Header, *reader) error { return nil }

func (m *GetAsyncReply) decodeBody(_ Header, r *reader) (err error) {
	m.Props, err = decodeAsyncProps(r)
	return err
}

func appendAsyncProps(b []byte, props []AsyncProp) []byte {
	for _, p := range props {
		b = put16(b, uint16(p.Type))
		b = put16(b, 8)
		b = put32(b, p.Mask)
	}
	return b
}

// decodeAsyncProps skips experimenter properties, whose length differs.
func decodeAsyncProps(r *reader) ([]AsyncProp, error) {
	props := make([]AsyncProp, 0, r.countTLVs(2, 8))
	for r.more() {
		typ, p := r.property("async property")
		if r.err != nil {
			return nil, r.err
		}
		if typ >= 0xfffe {
			continue
		}
		mask := p.u32("async property mask")
		if err := p.end("async property"); err != nil {
			return nil, fmt.Errorf("async property %d: %w", typ, err)
		}
		props = append(props, AsyncProp{Type: AsyncType(typ), Mask: mask})
	}
	return props, r.err
}

// property cuts the next property (struct ofp_prop_header) off: its type and
// what follows the 4 bytes of its header. The padding after it is skipped.
func (r *reader) property(what string) (typ uint16, body reader) {
	typ = r.u16(what + " type")
	n := int(r.u16(what + " length"))
	if r.err == nil && n < 4 {
		r.err = fmt.Errorf("%s length: %d, the least is 4", what, n)
	}
	body = r.cut(n-4, what)
	r.skip(pad8(n)-n, what+" padding")
	return typ, body
}
