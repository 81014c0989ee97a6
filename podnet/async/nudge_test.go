package async_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// nudges records when which port was nudged.
type nudges struct {
	mu    sync.Mutex
	begun time.Time
	at    []time.Duration
	keys  []podnet.PortKey
	err   error
}

func (n *nudges) nudge(_ context.Context, key podnet.PortKey) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = append(n.at, time.Since(n.begun))
	n.keys = append(n.keys, key)
	return n.err
}

func (n *nudges) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.at)
}

var inError = &podnet.PortError{Name: "port1", OFPort: -1, Text: "Invalid argument"}

// OF-4, OF-17: a port in error after its interface exists is nudged with
// back-off, however often events come, and its Pod is told so.
func TestNudge(t *testing.T) {
	n := &nudges{}
	bubble(t, async.Config{Nudge: n.nudge, NudgeMin: time.Second, NudgeMax: time.Minute}, func(t *testing.T, r *async.Readiness, s *sink, events names) {
		n.begun = time.Now()
		s.setFail(fmt.Errorf("wrapped: %w", inError))
		begin(t, r, key(1))
		for range 300 { // every nudge makes events; they must not make nudges
			time.Sleep(time.Second)
			events <- []string{"port1"}
		}
		synctest.Wait()
		want := []time.Duration{1, 3, 7, 15, 31, 63, 123, 183, 243}
		if len(n.at) != len(want) {
			t.Fatalf("nudged at %v, want after %v seconds", n.at, want)
		}
		for i, at := range n.at {
			if d := at - want[i]*time.Second; d < 0 || d > 100*time.Millisecond || n.keys[i] != key(1) {
				t.Errorf("nudge %d: %v %v, want at %d s", i, n.keys[i], at, want[i])
			}
		}
		_, late := s.seen()
		if len(late) == 0 || !strings.Contains(late[0], "Invalid argument") || !strings.Contains(late[0], "nudged") {
			t.Errorf("late %q, want Open vSwitch's words and the nudges", late)
		}
		for _, text := range late {
			if text != late[0] {
				t.Errorf("the cause changes from nudge to nudge: %q, then %q", late[0], text)
			}
		}
		// Cured, and in error again later: the back-off begins anew.
		s.setFail(nil)
		events <- []string{"port1"}
		synctest.Wait()
		before := n.count()
		s.setFail(inError)
		events <- []string{"port1"} // nobody promised it: it was ready
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if n.count() != before+1 || n.keys[before].Name != "port1" {
			t.Errorf("%d nudges of a port that lost its number, want one after a second", n.count()-before)
		}
	})
}

// A port whose interface is missing needs no nudge: Open vSwitch takes it up by
// itself, and its absence is what the Pod should hear of.
func TestNoNudgeWithoutTheInterface(t *testing.T) {
	n := &nudges{}
	var mu sync.Mutex
	missing := true
	cfg := async.Config{Nudge: n.nudge, Prepare: func(_ context.Context, keys []podnet.PortKey) []error {
		mu.Lock()
		defer mu.Unlock()
		errs := make([]error, len(keys))
		for i := range errs {
			if missing {
				errs[i] = fmt.Errorf("%s: %w", keys[i].Name, async.ErrNoDevice)
			}
		}
		return errs
	}}
	there := func(yes bool) {
		mu.Lock()
		defer mu.Unlock()
		missing = !yes
	}
	bubble(t, cfg, func(t *testing.T, r *async.Readiness, s *sink, events names) {
		s.setFail(inError)
		begin(t, r, key(1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, late := s.seen(); n.count() != 0 || len(late) == 0 || !strings.Contains(late[0], "no such host interface") {
			t.Errorf("%d nudges, late %q", n.count(), late)
		}
		there(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n.count() == 0 {
			t.Error("no nudge once the interface is there")
		}
		there(false) // it goes again
		time.Sleep(10 * time.Second)
		synctest.Wait()
		before := n.count()
		s.seen()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if _, late := s.seen(); n.count() != before || len(late) == 0 || !strings.Contains(late[len(late)-1], "no such host interface") {
			t.Errorf("%d more nudges, late %q", n.count()-before, late)
		}
		// The same for a port that nobody promised.
		r.Cancel(key(1))
		events <- []string{"port1"}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n.count() != before {
			t.Errorf("%d nudges of a port without its interface", n.count()-before)
		}
	})
}

func TestNudgeThatFails(t *testing.T) {
	n := &nudges{err: errors.New("OVSDB is away")}
	bubble(t, async.Config{Nudge: n.nudge}, func(t *testing.T, r *async.Readiness, s *sink, _ names) {
		s.setFail(inError)
		begin(t, r, key(1))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if _, late := s.seen(); len(late) == 0 || !strings.Contains(late[0], "could not be nudged: OVSDB is away") || !strings.Contains(late[0], "Invalid argument") {
			t.Errorf("late %q", late)
		}
		r.Cancel(key(1))
		before := n.count()
		time.Sleep(time.Hour)
		if n.count() != before {
			t.Error("a cancelled port is nudged")
		}
	})
}

// A port in error is never listed by the switch: whatever the rule, OVSDB is
// asked why, and the port is nudged.
func TestNudgeOfAPortThatIsNotListed(t *testing.T) {
	for _, rule := range []async.Accept{async.AcceptListed, async.AcceptLive} {
		n := &nudges{}
		cfg := async.Config{
			Accept: rule, Nudge: n.nudge,
			Ports:  func(string) (async.PortState, bool) { return async.PortState{}, false },
			OFPort: func(context.Context, podnet.PortKey) (uint32, error) { return 0, inError },
		}
		bubble(t, cfg, func(t *testing.T, r *async.Readiness, s *sink, _ names) {
			begin(t, r, key(1))
			time.Sleep(30 * time.Second)
			synctest.Wait()
			syncs, late := s.seen()
			if len(syncs) > 0 || n.count() < 3 || len(late) == 0 || !strings.Contains(late[0], "Invalid argument") || !strings.Contains(late[0], "nudged") {
				t.Errorf("rule %d: %d syncs, %d nudges, late %q", rule, len(syncs), n.count(), late)
			}
		})
	}
}
