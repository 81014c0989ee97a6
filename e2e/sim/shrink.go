package sim

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

// shrinkTries is how often a smaller schedule is played before it counts as one
// that does not fail. Goroutines that are due at the same virtual moment run in
// whatever order, so a failure may need several.
const shrinkTries = 4

// Shrink makes a failing schedule smaller for as long as it breaks the same
// rule, until budget is used up: it drops runs of events, half of them first and
// single ones last, then makes parts quick and pauses short.
func Shrink(t *testing.T, s Schedule, broken []string, budget time.Duration) Schedule {
	until := time.Now().Add(budget)
	rule := shape(broken[0])
	fails := func(s Schedule) bool {
		for range shrinkTries {
			if time.Now().After(until) {
				return false
			}
			if b := Run(t, s).Broken; len(b) > 0 && shape(b[0]) == rule {
				return true
			}
		}
		return false
	}
	for size := len(s.Events) / 2; size > 0; {
		smaller := false
		for at := 0; at+size <= len(s.Events); {
			try := s
			try.Events = slices.Delete(slices.Clone(s.Events), at, at+size)
			// The time that passed stays.
			if at < len(try.Events) {
				for _, e := range s.Events[at : at+size] {
					try.Events[at].After += e.After
				}
			}
			if fails(try) {
				s, smaller = try, true
			} else {
				at++
			}
		}
		if !smaller || size > len(s.Events)/2 {
			size /= 2
		}
	}
	for slow := range s.Slow {
		try := s
		if try.Slow = slow; fails(try) {
			s = try
			break
		}
	}
	for i := range s.Events {
		for _, after := range []time.Duration{0, time.Second, 10 * time.Second, time.Minute} {
			if time.Duration(s.Events[i].After) <= after {
				break
			}
			try := s
			try.Events = slices.Clone(s.Events)
			if try.Events[i].After = Duration(after); fails(try) {
				s = try
				break
			}
		}
	}
	return s
}

var variable = regexp.MustCompile(`"[^"]*"|\[[^]]*\]|[0-9a-f.µm]*[0-9][0-9a-f.µm]*[a-z]*|:.*$`)

// shape is a broken rule without what differs from run to run.
func shape(broken string) string {
	if at := regexp.MustCompile(`^[0-9.a-zµ]+: `).FindStringIndex(broken); at != nil {
		broken = broken[at[1]:]
	}
	return variable.ReplaceAllString(broken, "_")
}
