package podnet

import (
	"slices"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// track is what a Network knows about an interface beside its record. The
// record is what others may see; this is what the next step depends on.
// Network.mu guards it.
type track struct {
	// standing are the numbers under which the switch may hold flows of the
	// interface: written before a change is sent, cleared when its removal is
	// confirmed. Usually it is the record's OFPort or nothing; more only while
	// the outcome of a move is unknown.
	standing []uint32
	// unknown: an earlier process may have installed flows under numbers that
	// nobody remembers. The first replay settles it, because it deletes what
	// it did not install.
	unknown bool
	// marked is the value of podnet-state in the port's row.
	marked string

	promised bool // the readiness backend owes a sink call
	restored bool // read back from OVSDB

	asked    time.Time // when the port was asked for, or read back
	numbered time.Time // when a number was first seen
	readied  time.Time // when flows were first confirmed

	waitSince time.Time // start of the present wait; zero when ready
	tellFrom  time.Time // not told of before, however long it has lasted; zero: no such limit
	cause     why       // what the present wait waits for
	attempts  int       // looks of the present wait that ended without flows
	told      time.Time // of the last NotReady event of this wait
	toldCause string
	openWait  bool   // somebody was left waiting: Add returned without flows, or NotReady was told
	noted     string // Gen of the row that says that NotReady was told; "": none does
	announce  bool   // flows have gone in after Add returned, and the neighbours have not been told

	absent time.Time // the container was first seen gone at this sweep; zero when it was there
}

func (t *track) mayStand(ofport uint32) {
	if !slices.Contains(t.standing, ofport) {
		t.standing = append(t.standing, ofport)
	}
}

func (t *track) isGone(ofport uint32) {
	t.standing = slices.DeleteFunc(t.standing, func(p uint32) bool { return p == ofport })
}

// startTrack begins to track key, which has just entered the store.
func (n *Network) startTrack(key ifstore.Key, t track) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tracks[key] = &t
}

// tracked calls fn with the track of key; not at all when key is gone.
func (n *Network) tracked(key ifstore.Key, fn func(*track)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.tracks[key]; t != nil {
		fn(t)
	}
}

// trackOf returns a copy of the track of key.
func (n *Network) trackOf(key ifstore.Key) track {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.tracks[key]
	if t == nil {
		return track{}
	}
	c := *t
	c.standing = slices.Clone(t.standing)
	return c
}

// standingOn returns the keys that may have flows on ofport, in order.
func (n *Network) standingOn(ofport uint32) []ifstore.Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	var keys []ifstore.Key
	for key, t := range n.tracks {
		if slices.Contains(t.standing, ofport) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// forget removes the record of key and all that is known about it.
func (n *Network) forget(key ifstore.Key) {
	n.store.Delete(key)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.tracks, key)
}
