package podnet

import (
	"errors"
	"fmt"
)

// Sentinel errors on which callers decide. They come wrapped with the values
// at fault; test with errors.Is.
var (
	// ErrNoPort: the bridge has no port of that name, or it is another life of the name.
	ErrNoPort = errors.New("no such port")
	// ErrNoNumber: the port is there and OVS has not given it a number yet.
	ErrNoNumber = errors.New("no OpenFlow port number yet")
	// ErrPortExists: the name is taken by a port that is not this interface's.
	ErrPortExists = errors.New("port exists")
	// ErrOutcomeUnknown: the peer vanished before it answered; the change may or may not have been applied.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNotConnected: the peer is away; nothing was sent.
	ErrNotConnected = errors.New("not connected")
	// ErrTryAgain: the operation goes on or could not start; the caller should repeat it (CNI code 11).
	ErrTryAgain = errors.New("try again later")
	// ErrOvertaken: another Add or a Delete of the same interface or Pod made this Add pointless.
	ErrOvertaken = errors.New("overtaken")
	// ErrBadRequest: the request can never succeed as it is.
	ErrBadRequest = errors.New("bad request")
	// ErrBusy: another operation holds the interface, or what OVSDB and OpenFlow say does not agree yet; look again shortly.
	ErrBusy = errors.New("not settled yet")
	// ErrNotFound: no interface of that key.
	ErrNotFound = errors.New("interface not found")
)

// PortError carries Open vSwitch's own explanation of why a port has no
// number (Interface.error with ofport -1).
type PortError struct {
	Name   string
	OFPort int32
	Text   string // OVS's words; may be empty (seen on Windows)
}

func (e *PortError) Error() string {
	text := e.Text
	if text == "" {
		text = "Open vSwitch gives no reason"
	}
	return fmt.Sprintf("port %s: ofport %d: %s", e.Name, e.OFPort, text)
}
