package windows

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// vnicWait is what is remembered of a port between two attempts. Losing it
// costs nothing but a pause.
type vnicWait struct {
	asked   time.Time // of the latest attempt; what nobody asks for any more is forgotten
	missing bool      // its vNIC is
	since   time.Time // of missing
	told    string    // by HNS, about the endpoint of a missing vNIC

	opened time.Time         // when the type was switched last
	old    int32             // the number of the port before that; 0: it had none yet
	cause  *podnet.PortError // Open vSwitch's; nil: none
	nudges int
	due    time.Time // the next nudge
	rest   time.Time // end of the nudge under way: until then the type stays ""
}

// vnicWaits are the ports that wait. An async.Readiness does not tell that a
// promise was cancelled, so an entry lives as long as attempts for it come.
// All methods may be called concurrently.
type vnicWaits struct {
	patience             time.Duration // the longest pause between two attempts for a missing vNIC
	nudgeAfter, nudgeMax time.Duration
	came                 chan struct{} // a vNIC is missing now; holds one

	mu     sync.Mutex
	waits  map[podnet.PortKey]*vnicWait
	pruned time.Time
}

func newVNICWaits(patience, nudgeAfter, nudgeMax time.Duration) *vnicWaits {
	return &vnicWaits{
		patience: patience, nudgeAfter: nudgeAfter, nudgeMax: nudgeMax,
		came: make(chan struct{}, 1), waits: make(map[podnet.PortKey]*vnicWait),
	}
}

// of returns the entry of key. w.mu is held.
func (w *vnicWaits) of(key podnet.PortKey) *vnicWait {
	wait := w.waits[key]
	if wait == nil {
		wait = &vnicWait{}
		w.waits[key] = wait
	}
	return wait
}

// looked notes the results of an attempt to see vNICs and returns what HNS
// told about those that are missing. stale: a vNIC was there at the first
// attempt for its port, so that it may be the one of an earlier life of the
// name in a list that was made before; look again.
func (w *vnicWaits) looked(keys []podnet.PortKey, errs []error) (told []string, stale bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.prune(now)
	told = make([]string, len(keys))
	for i, key := range keys {
		stale = stale || (errs[i] == nil && w.waits[key] == nil)
		wait := w.of(key)
		wait.asked = now
		missing := errors.Is(errs[i], async.ErrNoDevice)
		if missing && !wait.missing {
			wait.since, wait.told = now, ""
		}
		if wait.missing = missing; missing {
			told[i] = wait.told
			select {
			case w.came <- struct{}{}:
			default:
			}
		}
	}
	return told, stale
}

// prune forgets ports that nobody has asked for in a long while. A port in
// error may come back only after the queue's longest pause, so it is a very
// long while. w.mu is held.
func (w *vnicWaits) prune(now time.Time) {
	const memory = 10 * time.Minute
	if now.Sub(w.pruned) < memory/10 {
		return
	}
	w.pruned = now
	for key, wait := range w.waits {
		if now.Sub(wait.asked) > memory {
			delete(w.waits, key)
		}
	}
}

// done forgets a port that needs nothing more.
func (w *vnicWaits) done(key podnet.PortKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waits, key)
}

// absent returns the names of ports that wait for their vNIC, each with the
// time since when. One that was not asked for in three pauses waits no longer.
func (w *vnicWaits) absent(now time.Time) map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make(map[string]time.Time)
	for key, wait := range w.waits {
		if wait.missing && now.Sub(wait.asked) <= 3*w.patience {
			names[key.Name] = wait.since
		}
	}
	return names
}

// tell notes what HNS says about the endpoint of a port whose vNIC is missing,
// and reports whether that is news.
func (w *vnicWaits) tell(name, told string) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, wait := range w.waits {
		if key.Name == name && wait.missing && wait.told != told {
			wait.told, news = told, true
		}
	}
	return news
}

// settleTime is how long what the row says may date from before the switch of
// its type. It is no cause to tell anybody meanwhile.
const settleTime = time.Second

// switched notes that the type was switched, and returns settling's error.
func (w *vnicWaits) switched(key podnet.PortKey, old int32, now time.Time) error {
	w.mu.Lock()
	wait := w.of(key)
	wait.opened, wait.old = now, old
	w.mu.Unlock()
	return w.settling(key, old, now)
}

// settling returns an error while ovs-vswitchd may not have seen the switch of
// the port's type yet: the row has no number, or the one it had. A row that had
// none may get one for the earlier type still, so its first says nothing. The
// error wraps podnet.ErrBusy: an earlier cause stands.
func (w *vnicWaits) settling(key podnet.PortKey, ofport int32, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := w.waits[key]
	if wait != nil && (ofport <= 0 || wait.old == 0 || ofport == wait.old) && now.Before(wait.opened.Add(settleTime)) {
		return fmt.Errorf("port %s: %w: its type has just been switched to %q", key.Name, podnet.ErrBusy, typeSwitched)
	}
	return nil
}

// failing notes that Open vSwitch could not open the port and says whether it
// should be nudged. The first look only starts the clock: most errors pass by
// themselves.
func (w *vnicWaits) failing(key podnet.PortKey, cause *podnet.PortError, now time.Time) (due bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := w.of(key)
	wait.cause = cause
	if wait.due.IsZero() {
		wait.due = now.Add(w.nudgeAfter)
	}
	return !now.Before(wait.due), &nudgeError{cause: cause, nudges: wait.nudges}
}

// nudged counts a nudge and sets the time for the next one.
func (w *vnicWaits) nudged(key podnet.PortKey, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := w.of(key)
	pause := w.nudgeAfter
	for range wait.nudges + 1 {
		pause = min(2*pause, w.nudgeMax)
	}
	wait.nudges++
	wait.rest, wait.due = now.Add(nudgeRest), now.Add(nudgeRest+pause)
	return &nudgeError{cause: wait.cause, nudges: wait.nudges}
}

// resting returns the error that is being nudged away while the port is to
// stay without its type.
func (w *vnicWaits) resting(key podnet.PortKey, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := w.waits[key]
	if wait == nil || !now.Before(wait.rest) {
		return nil
	}
	return &nudgeError{cause: wait.cause, nudges: wait.nudges}
}
