package fakehns

import "encoding/json"

// Some HRESULTs of the service. Those with 0x8007 are Windows errors, and
// hcsshim cuts them to their lower half; those with 0x803b are its own.
const (
	NotImplemented    uint32 = 0x80004001
	InvalidHandle     uint32 = 0x80070006
	InvalidParameter  uint32 = 0x80070057
	Busy              uint32 = 0x800700aa
	ElementNotFound   uint32 = 0x80070490
	Timeout           uint32 = 0x800705b4
	ServerUnavailable uint32 = 0x800706ba
	ObjectExists      uint32 = 0x80071392

	NetworkNotFound  uint32 = 0x803b0001
	EndpointNotFound uint32 = 0x803b0002
	AdapterNotFound  uint32 = 0x803b0006
	NetworkExists    uint32 = 0x803b0010
	AlreadyAttached  uint32 = 0x803b0014
	InvalidJSON      uint32 = 0x803b001b
	InvalidIP        uint32 = 0x803b001e
	InOtherNamespace uint32 = 0x803b002b
	HasReferences    uint32 = 0x803b002c
	AttachFailed     uint32 = 0x803b002e
	AddressInvalid   uint32 = 0x803b002f
)

// Fail is the answer of a failed call. The service gives a JSON text beside the
// HRESULT, which hcsshim puts in its error.
func Fail(code uint32, text string) *Reply {
	b, err := json.Marshal(struct {
		Success   bool
		Error     string
		ErrorCode uint32
	}{false, text, code})
	if err != nil {
		panic(err) // three plain fields
	}
	s := string(b)
	return &Reply{Code: code, Result: &s}
}

// done is the answer of a call that gives nothing back.
func done() *Reply { return &Reply{} }

// properties answers with v as JSON.
func properties(v any) *Reply {
	b, err := json.Marshal(v)
	if err != nil {
		return Fail(InvalidJSON, err.Error())
	}
	s := string(b)
	return &Reply{Properties: &s}
}
