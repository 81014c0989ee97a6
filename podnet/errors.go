package podnet

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Sentinel errors on which callers decide. They come wrapped with the values
// at fault; test with errors.Is.
var (
	// ErrNoPort: the bridge has no port of that name, or it is another life of the name.
	ErrNoPort = errors.New("no such port")
	// ErrNoNumber: the port is there and OVS has not given it a number yet.
	ErrNoNumber = errors.New("no OpenFlow port number yet")
	// ErrNoEndpoint: what the container's interface is made from is not there yet (Windows: the HNS endpoint).
	ErrNoEndpoint = errors.New("no endpoint yet")
	// ErrNoDevice: the host interface of the port is not there yet.
	ErrNoDevice = errors.New("no such host interface")
	// ErrPortDown: the port has a number, and its link is down.
	ErrPortDown = errors.New("port is down")
	// ErrNotListed: OVSDB and the OpenFlow session do not say the same of a port.
	ErrNotListed = errors.New("OVSDB and OpenFlow do not agree")
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

// joinedErrors holds several errors in one line: CNI shows an error as one string.
type joinedErrors []error

// join returns nil when every err is nil.
func join(errs ...error) error {
	var all joinedErrors
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

func (e joinedErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e joinedErrors) Unwrap() []error { return e }

// portGone reports whether err says that a port has no number now. Every other
// error of OFPort means that nobody knows.
func portGone(err error) bool {
	portErr := (*PortError)(nil)
	return errors.Is(err, ErrNoPort) || errors.Is(err, ErrNoNumber) || errors.As(err, &portErr)
}

// notSent reports whether err says that the switch did not apply a change. An
// error that leaves it open counts as applied.
func notSent(err error) bool {
	if errors.Is(err, ErrOutcomeUnknown) {
		return false
	}
	if errors.Is(err, ErrNotConnected) {
		return true
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// passing reports whether err may go away without anybody's help, so that
// waiting for it is worth while.
func passing(err error) bool {
	return errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrNotConnected) || errors.Is(err, ErrBusy) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
