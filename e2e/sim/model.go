package sim

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// fate is what must have become of a container's interface.
type fate struct {
	present, absent bool // which of both are possible
	owed            bool // the runtime must ask once more for its removal
}

func (f fate) String() string {
	switch {
	case f.present && f.absent:
		return "there or not"
	case f.present:
		return "there"
	}
	return "gone"
}

// after follows the calls of a container from one fate to the next. Calls that
// overlap may have happened in either order.
func after(f fate, calls []*call) fate {
	for len(calls) > 0 {
		n, end := 1, calls[0].ended
		for n < len(calls) && calls[n].begun < end {
			end = max(end, calls[n].ended)
			n++
		}
		f = f.next(calls[:n])
		calls = calls[n:]
	}
	return f
}

// next is the fate after calls that overlap.
func (f fate) next(calls []*call) fate {
	var adds, dels, added, deleted, pending, cut bool
	for _, k := range calls {
		ok := k.err == nil
		switch k.kind {
		case Add:
			adds = true
			added = added || ok
		default:
			dels = true
			deleted = deleted || ok
			pending = pending || !ok && removalBegan(k.err)
		}
		cut = cut || k.cut && !ok
	}
	switch {
	case adds && dels:
		return fate{present: added, absent: true, owed: cut || !deleted && !pending}
	case adds && added:
		// The one that failed took nothing back of what the other made.
		return fate{present: true}
	case adds && cut:
		return fate{present: true, absent: true, owed: true}
	case adds:
		return f
	case deleted:
		return fate{absent: true}
	case pending && !cut:
		return fate{absent: true}
	}
	return fate{present: f.present, absent: true, owed: true}
}

// removalBegan reports whether a DEL that failed left a removal that goes on.
func removalBegan(err error) bool {
	op := (*podnet.OpError)(nil)
	return errors.As(err, &op) && op.Step != "lock" && op.Step != "start"
}

// eventLog holds the rules for what a Pod is told.
type eventLog struct {
	n *node
	r *runtime

	mu      sync.Mutex
	last    map[int]podnet.Event
	life    map[int]int       // of the agent that sent it
	ready   map[int]bool      // the record is ready
	readyAt map[int]time.Time // when it was so last
	created map[int]time.Time // of the life of the record that ready and readyAt tell of
}

func newEventLog(n *node, r *runtime) *eventLog {
	return &eventLog{n: n, r: r, last: make(map[int]podnet.Event), life: make(map[int]int), ready: make(map[int]bool), readyAt: make(map[int]time.Time), created: make(map[int]time.Time)}
}

// What podnet.Config promises by default.
const (
	notReadyAfter  = 30 * time.Second
	notReadyRepeat = 5 * time.Minute
)

// told checks one event.
func (l *eventLog) told(e podnet.Event, life int) {
	c := l.n.index[e.Key.String()]
	l.n.log("event %s c%d: %s", e.Type, c, e.Message)
	now := time.Now()
	earliest, latest := l.r.added(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	last, again := l.last[c]
	again = again && l.life[c] == life && !last.Time.Before(latest)
	// A repeated ADD that finds the port lost waits, too, and hears of its end.
	again = again && !(e.Type == podnet.NetworkReady && l.r.asked(c).After(last.Time))
	if again && last.Type == e.Type && (e.Type == podnet.NetworkReady || now.Sub(last.Time) < notReadyRepeat) {
		l.n.breach("%s of c%d twice within %v: %s", e.Type, c, now.Sub(last.Time), e.Message)
	}
	l.last[c], l.life[c] = e, life
	if e.Type == podnet.NetworkReady {
		return
	}
	readyAt := l.readyAt[c]
	if l.ready[c] {
		readyAt = now
	}
	for _, since := range []struct {
		what string
		time time.Time
	}{{"it was ready", readyAt}, {"its ADD", earliest}} {
		if wait := now.Sub(since.time); wait < notReadyAfter {
			l.n.breach("NetworkNotReady of c%d only %v after %s: %s", c, wait, since.what, e.Message)
		}
	}
}

// watch follows the records of an agent until it ends.
func (l *eventLog) watch(a *agent) {
	updates := a.net.Updates()
	defer updates.Close()
	for {
		changes, err := updates.Next(a.ctx)
		l.mu.Lock()
		if err != nil {
			for c, ready := range l.ready {
				if ready {
					l.ready[c], l.readyAt[c] = false, time.Now()
				}
			}
			l.mu.Unlock()
			return
		}
		for _, u := range changes {
			c := l.n.index[u.Interface.Key.String()]
			// An interface waits from the moment its ADD was asked for. While that ADD waits for
			// the end of a DEL, the earlier interface may still be ready: that is no network of this one.
			if created := u.Interface.Created; !created.Equal(l.created[c]) {
				l.created[c], l.ready[c] = created, false
				delete(l.readyAt, c)
			}
			ready := !u.Removed && u.Interface.State == ifstore.StateReady
			if l.ready[c] && !ready {
				l.readyAt[c] = time.Now()
			}
			l.ready[c] = ready
		}
		l.mu.Unlock()
	}
}

// latest returns the last event of c and which agent sent it; sure: it is one
// of its present life; not even ok: it is of an earlier one.
func (l *eventLog) latest(c int) (e podnet.Event, life int, sure, ok bool) {
	earliest, latest := l.r.added(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok = l.last[c]
	return e, l.life[c], ok && !e.Time.Before(latest), ok && !e.Time.Before(earliest)
}

// added returns between which moments the present life of c was asked for.
// Calls that overlap, and a DEL that failed, leave it open.
func (r *runtime) added(c int) (earliest, latest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// What was swept has no DEL; the calls before it are of an earlier life all the same.
	calls := r.calls[c][r.swept[c]:]
	deleted := false
	for _, k := range calls {
		if k.kind != Add {
			deleted = true
		} else if deleted || latest.IsZero() || slices.ContainsFunc(calls, k.meets) {
			latest, deleted = k.at, false
		}
	}
	del := math.MaxInt // when the last DEL began that surely had its effect
	for _, k := range slices.Backward(calls) {
		switch {
		case k.kind == Add && k.begun < del && (k.ended == 0 || k.ended > del):
			earliest = k.at // it overlaps that DEL
		case k.kind == Add && del == math.MaxInt:
			earliest = k.at
		case k.kind == Del && k.ended > 0 && k.err == nil && del == math.MaxInt:
			del = k.begun
		}
	}
	return earliest, latest
}

// meets reports whether a DEL overlaps an ADD.
func (k *call) meets(del *call) bool {
	return del.kind == Del && (del.ended == 0 || del.ended > k.begun) && (k.ended == 0 || del.begun < k.ended)
}

// asked returns when the last ADD of c began.
func (r *runtime) asked(c int) (at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.calls[c] {
		if k.kind == Add {
			at = k.at
		}
	}
	return at
}
