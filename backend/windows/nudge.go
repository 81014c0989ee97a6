package windows

import (
	"context"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// nudgeRest is how long a nudged port stays without its type. ovs-vswitchd has
// to see it: two changes in one of its rounds are none.
const nudgeRest = time.Second

// nudgeError is Open vSwitch's own error with what was done about it. The
// number of nudges is the only part of the text that changes while it stands.
type nudgeError struct {
	cause  *podnet.PortError
	nudges int
}

func (e *nudgeError) Error() string {
	if e.nudges == 0 {
		return e.cause.Error()
	}
	times := "once"
	if e.nudges > 1 {
		times = fmt.Sprintf("%d times", e.nudges)
	}
	return fmt.Sprintf(`%v, although its host interface is there; its type was set to "" and back to %q %s`, e.cause, typeSwitched, times)
}

func (e *nudgeError) Unwrap() error { return e.cause }

// nudge makes Open vSwitch close and open a port that is in error, when it is
// time for that: by setting its type to "" here and back in a later attempt.
func (s *vnicStep) nudge(ctx context.Context, key podnet.PortKey, row podnet.Port) error {
	now, cause := time.Now(), &podnet.PortError{Name: row.Name, OFPort: row.OFPort, Text: row.Error}
	due, err := s.waits.failing(key, cause, now)
	if !due {
		return err
	}
	if failed := s.cfg.Rows.SetType(ctx, key, ""); failed != nil {
		return fmt.Errorf("%w; nudging it failed: %w", err, failed)
	}
	return s.waits.nudged(key, now)
}
