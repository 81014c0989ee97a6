package ofp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Message is one OpenFlow message without its header. The pointer types of
// this package implement it and no others.
type Message interface {
	Type() Type
	appendBody(dst []byte) ([]byte, error)
}

// Append appends the whole frame of m, header included, to dst. It fails, and
// returns dst as it was, when the frame would be longer than MaxLen or when m
// holds a value that has no wire form; the error names it.
func Append(dst []byte, xid uint32, m Message) ([]byte, error) {
	if m == nil {
		return dst, errors.New("no message to encode")
	}
	start := len(dst)
	b := append(dst, headerVersion(m), byte(m.Type()), 0, 0)
	b = put32(b, xid)
	var err error
	// The inner message of a bundle must carry the xid of the outer one.
	if add, ok := m.(*BundleAdd); ok {
		b, err = add.appendWithXID(b, xid)
	} else {
		b, err = m.appendBody(b)
	}
	if err == nil {
		err = setLen16(b, start, 2, "message")
	}
	if err != nil {
		return dst, fmt.Errorf("encode %s: %w", m.Type(), err)
	}
	return b, nil
}

func headerVersion(m Message) uint8 {
	if h, ok := m.(*Hello); ok {
		return h.headerVersion()
	}
	return Version
}

// Decode reads one whole frame. The message does not refer to frame. The xid is
// valid whenever the header is, also beside an error about the body.
func Decode(frame []byte) (xid uint32, m Message, err error) {
	h, err := ParseHeader(frame)
	if err != nil {
		return 0, nil, err
	}
	m, err = decode(h, frame)
	if err != nil {
		return h.XID, nil, fmt.Errorf("decode %s (xid %#x): %w", h.Type, h.XID, err)
	}
	return h.XID, m, nil
}

func decode(h Header, frame []byte) (Message, error) {
	if int(h.Length) != len(frame) {
		return nil, fmt.Errorf("length: %d, but the frame has %d bytes", h.Length, len(frame))
	}
	// Before the version is agreed a peer speaks its own.
	if h.Version != Version && h.Type != TypeHello && h.Type != TypeError {
		return nil, fmt.Errorf("version: %d, this is version %d", h.Version, Version)
	}
	m := newMessage(h, frame[HeaderLen:])
	r := reader{b: frame[HeaderLen:]}
	if err := m.decodeBody(h, &r); err != nil {
		return nil, err
	}
	if err := r.end("message"); err != nil {
		return nil, err
	}
	return m, nil
}

// decoder is the other half of Message.
type decoder interface {
	Message
	decodeBody(h Header, r *reader) error
}

func newMessage(h Header, body []byte) decoder {
	switch h.Type {
	case TypeHello:
		return &Hello{}
	case TypeError:
		return &Error{}
	case TypeEchoRequest:
		return &EchoRequest{}
	case TypeEchoReply:
		return &EchoReply{}
	case TypeFeaturesRequest:
		return &FeaturesRequest{}
	case TypeFeaturesReply:
		return &FeaturesReply{}
	case TypeSetConfig:
		return &SetConfig{}
	case TypePortStatus:
		return &PortStatus{}
	case TypeFlowMod:
		return &FlowMod{}
	case TypeMultipartRequest, TypeMultipartReply:
		return newMultipart(h.Type, body)
	case TypeBarrierRequest:
		return &BarrierRequest{}
	case TypeBarrierReply:
		return &BarrierReply{}
	case TypeGetAsyncRequest:
		return &GetAsyncRequest{}
	case TypeGetAsyncReply:
		return &GetAsyncReply{}
	case TypeSetAsync:
		return &SetAsync{}
	case TypeBundleControl:
		return &BundleControl{}
	case TypeBundleAdd:
		return &BundleAdd{}
	case TypeExperimenter:
		if len(body) >= 8 && binary.BigEndian.Uint32(body) == vendorNicira && binary.BigEndian.Uint32(body[4:]) == nxtCTFlush {
			return &CTFlush{}
		}
	}
	return &Unknown{MessageType: h.Type}
}

// Unknown is a message that this package has no type for, body as it came.
type Unknown struct {
	MessageType Type
	Body        []byte // all that follows the header
}

// Type returns m.MessageType.
func (m *Unknown) Type() Type { return m.MessageType }

func (m *Unknown) appendBody(b []byte) ([]byte, error) { return append(b, m.Body...), nil }

func (m *Unknown) decodeBody(_ Header, r *reader) error {
	m.Body = r.rest()
	return nil
}
