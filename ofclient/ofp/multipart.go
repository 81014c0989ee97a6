package ofp

import (
	"encoding/binary"
	"fmt"
)

// Multipart kinds (enum ofp_multipart_type).
const (
	mpFlowDesc = 1 // flows with instructions; OpenFlow 1.5 calls it FLOW_DESC
	mpPortDesc = 13

	mpMore      = 1 << 0
	mpHeaderLen = 8
)

// PortDescRequest asks for the description of one port, or of all.
type PortDescRequest struct {
	Port uint32 // 0 and PortAny for all
}

// PortDescReply is one part of the answer.
type PortDescReply struct {
	Ports []PortDesc
	More  bool // another part with the same xid follows
}

// Type returns TypeMultipartRequest.
func (*PortDescRequest) Type() Type { return TypeMultipartRequest }

// Type returns TypeMultipartReply.
func (*PortDescReply) Type() Type { return TypeMultipartReply }

// newMultipart looks at the kind of a multipart message. One that is too short
// to have a kind is nothing that the package knows.
func newMultipart(t Type, body []byte) decoder {
	kind := -1
	if len(body) >= mpHeaderLen {
		kind = int(binary.BigEndian.Uint16(body))
	}
	request := t == TypeMultipartRequest
	switch {
	case kind < 0:
		return &shortMultipart{Unknown{MessageType: t}}
	case kind == mpPortDesc && request:
		return &PortDescRequest{}
	case kind == mpPortDesc:
		return &PortDescReply{}
	case kind == mpFlowDesc && request:
		return &FlowStatsRequest{}
	case kind == mpFlowDesc:
		return &FlowStatsReply{}
	}
	return &Unknown{MessageType: t}
}

// shortMultipart is a multipart message without its header.
type shortMultipart struct{ Unknown }

func (m *shortMultipart) decodeBody(_ Header, r *reader) error {
	return fmt.Errorf("multipart header: needs %d bytes, %d are left", mpHeaderLen, len(r.b))
}

func putMultipart(b []byte, kind uint16, more bool) []byte {
	var flags uint16
	if more {
		flags = mpMore
	}
	return putZeros(put16(put16(b, kind), flags), 4)
}

// decodeMultipart reads the header; its kind is known already.
func decodeMultipart(r *reader) (more bool) {
	r.skip(2, "multipart type")
	more = r.u16("multipart flags")&mpMore != 0
	r.skip(4, "multipart padding")
	return more
}

func (m *PortDescRequest) appendBody(b []byte) ([]byte, error) {
	b = putMultipart(b, mpPortDesc, false)
	return putZeros(put32(b, anyIfZero(m.Port)), 4), nil
}

func (m *PortDescRequest) decodeBody(_ Header, r *reader) error {
	decodeMultipart(r)
	m.Port = zeroIfAny(r.u32("port_no"))
	r.skip(4, "port_no padding")
	return r.err
}

func (m *PortDescReply) appendBody(b []byte) ([]byte, error) {
	b = putMultipart(b, mpPortDesc, m.More)
	for i := range m.Ports {
		var err error
		if b, err = m.Ports[i].append(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (m *PortDescReply) decodeBody(_ Header, r *reader) error {
	m.More = decodeMultipart(r)
	if n := r.countTLVs(portDescLenOff, portDescLen); n > 0 {
		m.Ports = make([]PortDesc, 0, n)
	}
	for r.more() {
		p, err := decodePortDesc(r)
		if err != nil {
			return fmt.Errorf("port %d of the list: %w", len(m.Ports), err)
		}
		m.Ports = append(m.Ports, p)
	}
	return r.err
}
