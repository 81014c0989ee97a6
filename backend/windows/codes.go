package windows

import (
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/podnet"
)

// Errors on which callers decide; *HNSError wraps the one that its Code stands for,
// or podnet.ErrTryAgain when HNS is away, busy or on its way out.
var (
	// ErrNotFound: HNS says that an object of the call does not exist.
	ErrNotFound = errors.New("not found in HNS")
	// ErrAttached: the endpoint is in that namespace already.
	ErrAttached = errors.New("attached already")
	// ErrTaken: HNS says that the name or the address belongs to another object.
	ErrTaken = errors.New("taken in HNS")
)

// Code is an HRESULT of HNS, or a Win32 error for those of the form 0x8007xxxx,
// which hcsshim cuts to xxxx.
type Code uint32

// Codes that this package acts upon or that its tests use. The names are those
// of winerror.h.
const (
	CodeNotFound           Code = 0x490 // ERROR_NOT_FOUND, "Element not found"
	CodeObjectExists       Code = 0x1392
	CodeServerUnavailable  Code = 0x6ba
	CodeNetworkNotFound    Code = 0x803b0001
	CodeEndpointNotFound   Code = 0x803b0002
	CodeNetworkExists      Code = 0x803b0010
	CodeEndpointAttached   Code = 0x803b0014
	CodeRequestUnsupported Code = 0x803b0015
	CodeAddressTaken       Code = 0x803b002f
)

// meaning is what a code says and what to do about it.
type meaning struct {
	text string
	is   error // the sentinel it stands for; nil: none
}

// meanings are the codes that HNS was seen to answer, or that it may answer to
// the calls made here. The texts are ours; HNS's own are in its language and
// say less.
var meanings = map[Code]meaning{
	0x5:                   {text: "access denied; run as administrator or SYSTEM"},
	0x32:                  {text: "this version of Windows does not support the request"},
	0x34:                  {text: "a network of that name exists already", is: ErrTaken},
	0x57:                  {text: "HNS takes a value of the request for invalid"},
	0xaa:                  {text: "HNS is busy with the object; try again", is: podnet.ErrTryAgain},
	0xb7:                  {text: "the object exists already", is: ErrTaken},
	0x425:                 {text: "the Host Network Service does not accept requests now; see `sc query hns`", is: podnet.ErrTryAgain},
	0x426:                 {text: "the Host Network Service is not started; start it (`sc start hns`)", is: podnet.ErrTryAgain},
	CodeNotFound:          {text: "HNS has no such object", is: ErrNotFound},
	0x5b4:                 {text: "HNS gave up waiting for a part of Windows", is: podnet.ErrTryAgain},
	CodeServerUnavailable: {text: "the Host Network Service does not run; see `sc query hns` and its event log", is: podnet.ErrTryAgain},
	0x6be:                 {text: "the Host Network Service ended in the middle of the call", is: podnet.ErrTryAgain},
	CodeObjectExists:      {text: "the object exists already", is: ErrTaken},

	CodeNetworkNotFound:    {text: "the HNS network is gone", is: ErrNotFound},
	CodeEndpointNotFound:   {text: "the HNS endpoint is gone", is: ErrNotFound},
	0x803b0003:             {text: "a layer of the network is missing in the virtual switch"},
	0x803b0004:             {text: "the virtual switch is missing; restart HNS or make the network anew"},
	0x803b0005:             {text: "the network has no such subnet; compare the Pod CIDR with the HNS network's"},
	0x803b0006:             {text: "the host adapter of the network is missing; name another uplink"},
	0x803b0007:             {text: "the endpoint's port of the virtual switch is missing"},
	0x803b0008:             {text: "HNS has no such policy"},
	0x803b000a:             {text: "HNS takes the network's settings for invalid"},
	0x803b000b:             {text: "HNS does not support the network's type"},
	0x803b000c:             {text: "HNS takes the endpoint's settings for invalid"},
	0x803b000d:             {text: "HNS takes a policy for invalid"},
	CodeNetworkExists:      {text: "a network of that name or on that adapter exists already", is: ErrTaken},
	0x803b0011:             {text: "a layer of that name exists already in the virtual switch"},
	0x803b0012:             {text: "the policy exists already"},
	0x803b0013:             {text: "a port of that name exists already in the virtual switch", is: ErrTaken},
	CodeEndpointAttached:   {text: "the endpoint is attached already", is: ErrAttached},
	CodeRequestUnsupported: {text: "HNS does not support the request in the object's present state; a container may still hold the namespace or the endpoint"},
	0x803b0017:             {text: "HNS is in a degraded state; restart it when no Pod is being started"},
	0x803b0018:             {text: "the virtual switch is shared with another network and cannot be changed"},
	0x803b001a:             {text: "HNS cannot write its state to the registry"},
	0x803b001b:             {text: "HNS cannot read the request (invalid JSON)"},
	0x803b001d:             {text: "the endpoint may not be shared between containers"},
	0x803b001e:             {text: "an address is invalid or in no subnet of the HNS network; compare the Pod CIDR with the HNS network's"},
	0x803b001f:             {text: "the extension of the virtual switch is missing; install Open vSwitch's"},
	0x803b0020:             {text: "the Host Network Service is stopping", is: podnet.ErrTryAgain},
	0x803b002b:             {text: "the endpoint is in another namespace"},
	0x803b002c:             {text: "the object is still in use by others"},
	0x803b002e:             {text: "attaching to the namespace failed; the sandbox may be ending"},
	CodeAddressTaken:       {text: "an address is reserved, or another endpoint has it", is: ErrTaken},
}

// String returns the code with its meaning.
func (c Code) String() string {
	if m, ok := meanings[c]; ok {
		return fmt.Sprintf("%s (0x%x)", m.text, uint32(c))
	}
	return fmt.Sprintf("HNS error 0x%x; see `certutil -error 0x%x`", uint32(c), uint32(c))
}

// HNSError is an error that HNS answered.
type HNSError struct {
	Op   string // what was asked, in words: "delete endpoint 5f0b..."
	Code Code
	Text string // HNS's own words; they are shown and never looked at
}

func (e *HNSError) Error() string {
	s := e.Op + ": " + e.Code.String()
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Unwrap returns the sentinel that the code stands for.
func (e *HNSError) Unwrap() error { return meanings[e.Code].is }
