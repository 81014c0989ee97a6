package ofp

// EchoRequest asks the peer for an EchoReply with the same data. Either side sends it.
type EchoRequest struct{ Data []byte }

// EchoReply answers an EchoRequest and carries its data.
type EchoReply struct{ Data []byte }

// FeaturesRequest asks for a FeaturesReply.
type FeaturesRequest struct{}

// FeaturesReply describes the switch.
type FeaturesReply struct {
	DatapathID   uint64 // low 48 bits are a MAC address as a rule
	Buffers      uint32 // packets that can be buffered; 0 on OVS
	Tables       uint8
	AuxiliaryID  uint8
	Capabilities uint32 // OFPC_*
}

// SetConfig sets how packets go to the controller. On a management connection
// of OVS a non-zero MissSendLen also switches asynchronous messages on, all of
// them; SetAsync chooses.
type SetConfig struct {
	Flags       uint16
	MissSendLen uint16 // bytes
}

// BarrierRequest asks for a BarrierReply once everything before it is done.
type BarrierRequest struct{}

// BarrierReply says that everything before the BarrierRequest of that xid is done.
type BarrierReply struct{}

// Type returns TypeEchoRequest.
func (*EchoRequest) Type() Type { return TypeEchoRequest }

// Type returns TypeEchoReply.
func (*EchoReply) Type() Type { return TypeEchoReply }

// Type returns TypeFeaturesRequest.
func (*FeaturesRequest) Type() Type { return TypeFeaturesRequest }

// Type returns TypeFeaturesReply.
func (*FeaturesReply) Type() Type { return TypeFeaturesReply }

// Type returns TypeSetConfig.
func (*SetConfig) Type() Type { return TypeSetConfig }

// Type returns TypeBarrierRequest.
func (*BarrierRequest) Type() Type { return TypeBarrierRequest }

// Type returns TypeBarrierReply.
func (*BarrierReply) Type() Type { return TypeBarrierReply }

func (m *EchoRequest) appendBody(b []byte) ([]byte, error)   { return append(b, m.Data...), nil }
func (m *EchoReply) appendBody(b []byte) ([]byte, error)     { return append(b, m.Data...), nil }
func (*FeaturesRequest) appendBody(b []byte) ([]byte, error) { return b, nil }
func (*BarrierRequest) appendBody(b []byte) ([]byte, error)  { return b, nil }
func (*BarrierReply) appendBody(b []byte) ([]byte, error)    { return b, nil }

func (m *FeaturesReply) appendBody(b []byte) ([]byte, error) {
	b = put64(b, m.DatapathID)
	b = put32(b, m.Buffers)
	b = append(b, m.Tables, m.AuxiliaryID, 0, 0)
	b = put32(b, m.Capabilities)
	return put32(b, 0), nil
}

func (m *SetConfig) appendBody(b []byte) ([]byte, error) {
	return put16(put16(b, m.Flags), m.MissSendLen), nil
}

func (m *EchoRequest) decodeBody(_ Header, r *reader) error {
	m.Data = r.rest()
	return nil
}

func (m *EchoReply) decodeBody(_ Header, r *reader) error {
	m.Data = r.rest()
	return nil
}

func (*FeaturesRequest) decodeBody(Header, *reader) error { return nil }
func (*BarrierRequest) decodeBody(Header, *reader) error  { return nil }
func (*BarrierReply) decodeBody(Header, *reader) error    { return nil }

func (m *FeaturesReply) decodeBody(_ Header, r *reader) error {
	m.DatapathID = r.u64("datapath_id")
	m.Buffers = r.u32("n_buffers")
	m.Tables = r.u8("n_tables")
	m.AuxiliaryID = r.u8("auxiliary_id")
	r.skip(2, "padding")
	m.Capabilities = r.u32("capabilities")
	r.skip(4, "reserved")
	return r.err
}

func (m *SetConfig) decodeBody(_ Header, r *reader) error {
	m.Flags = r.u16("flags")
	m.MissSendLen = r.u16("miss_send_len")
	return r.err
}
