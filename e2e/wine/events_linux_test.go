package wine

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The two reasons of events.
const (
	notReady = "NetworkNotReady"
	ready    = "NetworkReady"
)

// told demands that the agent's latest event of a Pod has that reason, and these
// words in its text.
func (p *pod) told(reason string, words ...string) error {
	out, err := p.n.tool("events", p.container, "-o", "json")
	if err != nil {
		return err
	}
	var events []struct{ Reason, Message string }
	if err := json.Unmarshal([]byte(out), &events); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if len(events) == 0 {
		return fmt.Errorf("no event of %s", p.name)
	}
	last := events[len(events)-1]
	if last.Reason != reason {
		return fmt.Errorf("the last event of %s is %+v, not %s", p.name, last, reason)
	}
	for _, w := range words {
		if !strings.Contains(last.Message, w) {
			return fmt.Errorf("the event of %s does not say %q: %s", p.name, w, last.Message)
		}
	}
	return nil
}
