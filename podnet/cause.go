package podnet

import "errors"

// Cause is the kind of thing that an interface waits for: for metrics, and for
// programs that decide on it. The words for people are in the wait's text.
type Cause string

const (
	CauseEndpoint Cause = "endpoint" // the container's endpoint is not there yet (Windows)
	CauseDevice   Cause = "device"   // the host interface has not appeared yet
	CauseError    Cause = "error"    // Open vSwitch cannot open the device
	CauseNumber   Cause = "number"   // Open vSwitch has not given a number yet
	CausePort     Cause = "port"     // the port was removed behind our back
	CauseDown     Cause = "down"     // the port is there and its link is down
	CauseSession  Cause = "session"  // OVSDB or OpenFlow is away, or they do not agree yet
	CauseFlows    Cause = "flows"    // the switch has not confirmed the flows, or refuses them
	CauseOther    Cause = "other"
)

// Causes lists every Cause.
func Causes() []Cause {
	return []Cause{CauseEndpoint, CauseDevice, CauseError, CauseNumber, CausePort, CauseDown, CauseSession, CauseFlows, CauseOther}
}

// CauseOf tells the kind of an error of a readiness backend, of Bridge or of Flows.
func CauseOf(err error) Cause {
	portErr, flows := (*PortError)(nil), flowsError{}
	switch {
	case errors.Is(err, ErrNoEndpoint):
		return CauseEndpoint
	case errors.Is(err, ErrNoDevice):
		return CauseDevice
	case errors.As(err, &portErr):
		return CauseError
	case errors.Is(err, ErrPortDown):
		return CauseDown
	case errors.Is(err, ErrNoNumber):
		return CauseNumber
	case errors.Is(err, ErrNoPort):
		return CausePort
	case errors.Is(err, ErrNotConnected), errors.Is(err, ErrOutcomeUnknown), errors.Is(err, ErrNotListed):
		return CauseSession
	case errors.As(err, &flows):
		return CauseFlows
	}
	return CauseOther
}

// flowsError marks an error of Flows.
type flowsError struct{ error }

func (e flowsError) Unwrap() error { return e.error }

// why is what an interface waits for.
type why struct {
	text string
	kind Cause
}

func whyOf(err error) why { return why{err.Error(), CauseOf(err)} }
