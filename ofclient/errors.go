package ofclient

import (
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/podnet"
)

// FlowError says which flow change of which group was refused. Nothing of
// its group was applied.
type FlowError struct {
	Group string
	Mod   ofp.FlowMod
	Cause error // *ofp.Error from the switch, or why the change cannot be encoded
}

// maxFlowText keeps an error readable: a flow can have thousands of actions.
const maxFlowText = 400

func (e *FlowError) Error() string {
	text := e.Mod.String()
	if len(text) > maxFlowText {
		text = text[:maxFlowText] + "..."
	}
	return fmt.Sprintf("flows of %s: %s: %v", e.Group, text, e.Cause)
}

// Unwrap returns the cause.
func (e *FlowError) Unwrap() error { return e.Cause }

// errClosed is the end of a session that we closed.
var errClosed = errors.New("session closed")

// lostError is the result of a request whose session ended before its answer came.
type lostError struct{ cause error }

func (e *lostError) Error() string { return "session lost: " + e.cause.Error() }
func (e *lostError) Unwrap() error { return e.cause }

// notSent is for a request of which no byte was written.
func notSent(cause error) error { return fmt.Errorf("%w: %w", podnet.ErrNotConnected, cause) }

// notAnswered is for a request that changes nothing, or of which it is certain that nothing was applied.
func notAnswered(err error) error {
	if lost, ok := errors.AsType[*lostError](err); ok {
		return fmt.Errorf("%w: %w", podnet.ErrNotConnected, lost)
	}
	return err
}

// unknown is for a change that was sent and not answered.
func unknown(err error) error { return fmt.Errorf("%w: %w", podnet.ErrOutcomeUnknown, err) }
