package ofp

import (
	"bytes"
	"fmt"
	"strings"
)

// Reserved port numbers (enum ofp_port_no). Real ports are 1 to PortMax; OVS
// itself gives no number above 0xfeff.
const (
	PortMax        = 0xffffff00
	PortUnset      = 0xfffffff7
	PortInPort     = 0xfffffff8
	PortTable      = 0xfffffff9
	PortNormal     = 0xfffffffa
	PortFlood      = 0xfffffffb
	PortAll        = 0xfffffffc
	PortController = 0xfffffffd
	PortLocal      = 0xfffffffe
	PortAny        = 0xffffffff
)

// PortConfig is a set of administrative port settings.
type PortConfig uint32

// The bits of PortConfig.
const (
	PortConfigDown       PortConfig = 1 << 0
	PortConfigNoRecv     PortConfig = 1 << 2
	PortConfigNoFwd      PortConfig = 1 << 5
	PortConfigNoPacketIn PortConfig = 1 << 6
)

// PortState is the state that a switch sees a port in. OVS also reports 0.
type PortState uint32

// The bits of PortState.
const (
	PortStateLinkDown PortState = 1 << 0
	PortStateBlocked  PortState = 1 << 1
	PortStateLive     PortState = 1 << 2
)

// MaxPortName is the longest port name in bytes. OVS cuts longer names, so two
// ports that share their first 15 bytes look alike.
const MaxPortName = 15

// String lists the set bits in the words of ovs-ofctl, "0" for none.
func (s PortState) String() string {
	return bitNames(uint32(s), "LINK_DOWN", "BLOCKED", "LIVE")
}

// String lists the set bits in the words of ovs-ofctl, "0" for none.
func (c PortConfig) String() string {
	return bitNames(uint32(c), "PORT_DOWN", "", "NO_RECV", "", "", "NO_FWD", "NO_PACKET_IN")
}

func bitNames(v uint32, names ...string) string {
	if v == 0 {
		return "0"
	}
	var words []string
	for i, name := range names {
		if name != "" && v&(1<<i) != 0 {
			words = append(words, name)
			v &^= 1 << i
		}
	}
	if v != 0 {
		words = append(words, fmt.Sprintf("%#x", v))
	}
	return strings.Join(words, " ")
}

// PortDesc describes a port (struct ofp14_port). It is comparable.
type PortDesc struct {
	Number   uint32
	HWAddr   [6]byte
	Name     string // MaxPortName bytes at most
	Config   PortConfig
	State    PortState
	Ethernet PortEthernet
}

// PortEthernet is the Ethernet property of a port: OFPPF_* bitmaps, speeds in kbit/s.
type PortEthernet struct {
	Current, Advertised, Supported, Peer uint32
	CurrentSpeed, MaxSpeed               uint32
}

const (
	portDescLen     = 40 // without properties
	portNameLen     = 16
	portPropEther   = 0
	portEtherLen    = 32
	portStatusPad   = 7
	portDescLenOff  = 4
	portDescPadding = 2
)

func (p *PortDesc) append(b []byte) ([]byte, error) {
	if len(p.Name) > MaxPortName || strings.IndexByte(p.Name, 0) >= 0 {
		return nil, fmt.Errorf("port name %q: at most %d bytes, none of them zero", p.Name, MaxPortName)
	}
	b = put32(b, p.Number)
	b = put16(b, portDescLen+portEtherLen)
	b = putZeros(b, 2)
	b = append(b, p.HWAddr[:]...)
	b = putZeros(b, portDescPadding)
	b = append(b, p.Name...)
	b = putZeros(b, portNameLen-len(p.Name))
	b = put32(b, uint32(p.Config))
	b = put32(b, uint32(p.State))
	e := &p.Ethernet
	b = put16(b, portPropEther)
	b = put16(b, portEtherLen)
	b = putZeros(b, 4)
	for _, v := range [...]uint32{e.Current, e.Advertised, e.Supported, e.Peer, e.CurrentSpeed, e.MaxSpeed} {
		b = put32(b, v)
	}
	return b, nil
}

// decodePortDesc cuts one port description off r and reads it. Properties other
// than Ethernet are skipped.
func decodePortDesc(r *reader) (PortDesc, error) {
	n, ok := r.peek16(portDescLenOff)
	if ok && n < portDescLen {
		return PortDesc{}, fmt.Errorf("port length: %d, the least is %d", n, portDescLen)
	}
	if !ok {
		n = portDescLen
	}
	c := r.cut(n, "port description")
	p := PortDesc{Number: c.u32("port_no")}
	c.skip(4, "port length and padding")
	p.HWAddr = c.mac("hw_addr")
	c.skip(portDescPadding, "hw_addr padding")
	name, _, _ := bytes.Cut(c.take(portNameLen, "port name"), []byte{0})
	p.Name = string(name[:min(len(name), MaxPortName)])
	p.Config = PortConfig(c.u32("port config"))
	p.State = PortState(c.u32("port state"))
	for c.more() {
		typ, e := c.property("port property")
		if typ != portPropEther || c.err != nil {
			continue
		}
		e.skip(4, "Ethernet property padding")
		for _, v := range [...]*uint32{&p.Ethernet.Current, &p.Ethernet.Advertised, &p.Ethernet.Supported,
			&p.Ethernet.Peer, &p.Ethernet.CurrentSpeed, &p.Ethernet.MaxSpeed} {
			*v = e.u32("Ethernet property")
		}
		if e.err != nil {
			return PortDesc{}, e.err
		}
	}
	return p, c.err
}

// PortReason says what happened to the port of a PortStatus.
type PortReason uint8

// The reasons of a PortStatus.
const (
	PortAdded    PortReason = 0
	PortDeleted  PortReason = 1
	PortModified PortReason = 2
)

// String returns the word that ovs-ofctl prints.
func (r PortReason) String() string {
	switch r {
	case PortAdded:
		return "ADD"
	case PortDeleted:
		return "DEL"
	case PortModified:
		return "MOD"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// PortStatus tells that a port was added, deleted or changed. A management
// connection gets none before SetAsync or SetConfig.
type PortStatus struct {
	Reason PortReason
	Desc   PortDesc
}

// Type returns TypePortStatus.
func (*PortStatus) Type() Type { return TypePortStatus }

func (m *PortStatus) appendBody(b []byte) ([]byte, error) {
	b = append(b, byte(m.Reason))
	return m.Desc.append(putZeros(b, portStatusPad))
}

func (m *PortStatus) decodeBody(_ Header, r *reader) (err error) {
	m.Reason = PortReason(r.u8("reason"))
	r.skip(portStatusPad, "padding")
	if r.err != nil {
		return r.err
	}
	m.Desc, err = decodePortDesc(r)
	return err
}
