package lab

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// PodEvent is what the agent told the owner of a Pod.
type PodEvent struct {
	Time      time.Time // when it was written to the log
	Type      string    // NetworkNotReady, NetworkReady
	Pod       string    // namespace/name
	Interface string    // container-id/interface
	Message   string
}

// PodEvents returns the events in the agent's log, oldest first. Without
// Kubernetes the log is where they go. A restarted agent goes on in the same log.
func (n *Node) PodEvents() ([]PodEvent, error) {
	raw, err := os.ReadFile(n.logPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // no agent was started yet
	}
	if err != nil {
		return nil, err
	}
	return parseEvents(string(raw)), nil
}

var eventLine = regexp.MustCompile(`^I(\d{4} \d\d:\d\d:\d\d\.\d{6})\s.*\] "Pod event".* type="([^"]*)" pod="([^"]*)" interface="([^"]*)".* message=(".*)`)

func parseEvents(log string) []PodEvent {
	var events []PodEvent
	for line := range strings.Lines(log) {
		m := eventLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		quoted, err := strconv.QuotedPrefix(m[5])
		if err != nil {
			continue // the agent was killed in the middle of the line
		}
		message, err := strconv.Unquote(quoted)
		if err != nil {
			continue
		}
		// klog leaves the year out.
		at, err := time.ParseInLocation("2006 0102 15:04:05.000000", strconv.Itoa(time.Now().Year())+" "+m[1], time.Local)
		if err != nil {
			continue
		}
		events = append(events, PodEvent{Time: at, Type: m[2], Pod: m[3], Interface: m[4], Message: message})
	}
	return events
}
