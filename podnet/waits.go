package podnet

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// Wait is an interface that has no network yet, or no longer.
type Wait struct {
	Key   ifstore.Key
	Port  PortKey
	Since time.Time // beginning of the wait: of its Add, or when the port was lost
	Cause Cause
	Text  string // what it waits for, in words
	// Attempts counts the looks at the port that ended without flows. It starts anew with the process.
	Attempts int
}

// Waits returns the interfaces that wait, the longest first.
func (n *Network) Waits() []Wait {
	var waits []Wait
	for _, iface := range n.store.List() {
		if iface.State != ifstore.StateWaiting {
			continue
		}
		t := n.trackOf(iface.Key)
		if t.waitSince.IsZero() {
			continue // ready or gone by now
		}
		waits = append(waits, Wait{Key: iface.Key, Port: portKey(iface), Since: t.waitSince, Cause: t.cause.kind, Text: t.cause.text, Attempts: t.attempts})
	}
	slices.SortStableFunc(waits, func(a, b Wait) int {
		return cmp.Or(a.Since.Compare(b.Since), compareKeys(a.Key, b.Key))
	})
	return waits
}

// Noter is implemented by a PortSink that shows what a port waits for before it
// is late. *Network implements it.
type Noter interface {
	// Note tells that an attempt to make a promised port ready failed, and why. It never blocks.
	Note(key PortKey, cause error)
}

// Note implements Noter.
func (n *Network) Note(key PortKey, cause error) {
	iface, ok := n.store.ByName(key.Name)
	if !ok || (key.Gen != "" && key.Gen != iface.Gen) || iface.State != ifstore.StateWaiting {
		return
	}
	n.noteAttempt(iface, cause)
}

// noteAttempt counts an attempt that failed and keeps its cause. A lock that
// was held for a moment explains nothing.
func (n *Network) noteAttempt(iface ifstore.Interface, cause error) {
	n.tracked(iface.Key, func(t *track) {
		if t.waitSince.IsZero() {
			return
		}
		t.attempts++
		if cause != nil && !errors.Is(cause, ErrBusy) {
			t.cause = whyOf(cause)
		}
	})
}
