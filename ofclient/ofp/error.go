package ofp

import (
	"encoding/binary"
	"fmt"
)

// Error types (enum ofp_error_type).
const (
	ErrTypeHelloFailed   uint16 = 0
	ErrTypeBadRequest    uint16 = 1
	ErrTypeBadAction     uint16 = 2
	ErrTypeBadInst       uint16 = 3
	ErrTypeBadMatch      uint16 = 4
	ErrTypeFlowModFailed uint16 = 5
	ErrTypeAsyncConfig   uint16 = 15
	ErrTypeBundleFailed  uint16 = 17
	ErrTypeExperimenter  uint16 = 0xffff
)

// Error codes on which callers decide, with their types.
const (
	ErrBadRequestBadType   uint16 = 1  // of ErrTypeBadRequest: message type not supported
	ErrBundleBadID         uint16 = 2  // of ErrTypeBundleFailed: no such bundle
	ErrBundleMessageFailed uint16 = 13 // of ErrTypeBundleFailed: a message of the bundle was refused
	ErrBundleTimeout       uint16 = 14 // of ErrTypeBundleFailed: open for too long; comes with the xid of the open request
)

// Error is the switch's refusal of the message whose xid it carries. It is a
// Go error too; errors.As finds it as *Error and as Error.
type Error struct {
	ErrType      uint16
	Code         uint16 // the experimenter's own type when ErrType is ErrTypeExperimenter
	Experimenter uint32 // when ErrType is ErrTypeExperimenter
	Data         []byte // as a rule the start of the refused message, header first
}

// Type returns TypeError.
func (*Error) Type() Type { return TypeError }

// Error names type and code as the specification and OVS do, such as
// "OFPT_ERROR OFPBFC_TIMEOUT".
func (e Error) Error() string { return "switch answered " + e.String() }

// String names type and code as OVS does, such as "OFPBFC_TIMEOUT", numbers for
// those that the package does not know.
func (e Error) String() string {
	if e.ErrType == ErrTypeHelloFailed && len(e.Data) > 0 && printable(e.Data) {
		return fmt.Sprintf("%s: %s", e.name(), e.Data) // hello errors carry text
	}
	return e.name()
}

func (e Error) name() string {
	if e.ErrType == ErrTypeExperimenter {
		if e.Experimenter == vendorNicira {
			if name, ok := niciraErrorNames[e.Code]; ok {
				return name
			}
		}
		return fmt.Sprintf("error %d of experimenter %#x", e.Code, e.Experimenter)
	}
	if int(e.ErrType) < len(errorNames) {
		if codes := errorNames[e.ErrType]; int(e.Code) < len(codes) && codes[e.Code] != "" {
			return codes[e.Code]
		}
	}
	return fmt.Sprintf("error type %d code %d", e.ErrType, e.Code)
}

// Refused is the header of the refused message, when Data holds one.
func (e Error) Refused() (Header, bool) {
	h, err := ParseHeader(e.Data)
	return h, err == nil
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

func (e *Error) appendBody(b []byte) ([]byte, error) {
	b = put16(put16(b, e.ErrType), e.Code)
	if e.ErrType == ErrTypeExperimenter {
		b = put32(b, e.Experimenter)
	}
	return append(b, e.Data...), nil
}

func (e *Error) decodeBody(_ Header, r *reader) error {
	e.ErrType = r.u16("error type")
	e.Code = r.u16("error code")
	if e.ErrType == ErrTypeExperimenter {
		b := r.take(4, "error experimenter")
		if r.err != nil {
			return r.err
		}
		e.Experimenter = binary.BigEndian.Uint32(b)
	}
	if r.err == nil {
		e.Data = r.rest()
	}
	return r.err
}
