package podnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// setWaiting makes the record wait for cause with the number its flows use or
// are about to use (0: none). A record that is going away is left alone.
func (n *Network) setWaiting(key ifstore.Key, ofport uint32, cause why) (ifstore.Interface, error) {
	var unchanged ifstore.Interface
	iface, err := n.store.Update(key, "", func(i *ifstore.Interface) error {
		if i.State == ifstore.StateWithdrawing {
			return fmt.Errorf("%w: the interface is being removed", ErrOvertaken)
		}
		if i.State == ifstore.StateWaiting && i.OFPort == ofport && i.Waiting == cause.text {
			unchanged = *i
			return errUnchanged // those who watch the store need not hear of every look
		}
		i.State, i.OFPort, i.Waiting = ifstore.StateWaiting, ofport, cause.text
		return nil
	})
	if errors.Is(err, errUnchanged) {
		iface, err = unchanged, nil
	}
	if err != nil {
		return ifstore.Interface{}, err
	}
	n.tracked(key, func(t *track) {
		if t.waitSince.IsZero() {
			t.waitSince, t.told, t.toldCause, t.attempts = time.Now(), time.Time{}, "", 0
		}
		t.cause = cause
	})
	return iface, nil
}

// confirm makes the record ready on ofport: the switch has the flows. Whoever
// was left waiting hears of it.
func (n *Network) confirm(ctx context.Context, key ifstore.Key, ofport uint32) error {
	n.telling.Lock() // the last event of an interface has to be its last state
	defer n.telling.Unlock()
	iface, err := n.store.Update(key, "", func(i *ifstore.Interface) error {
		if i.State == ifstore.StateWithdrawing {
			return fmt.Errorf("%w: the interface is being removed", ErrOvertaken)
		}
		i.State, i.OFPort, i.Waiting = ifstore.StateReady, ofport, ""
		return nil
	})
	if err != nil {
		return err
	}
	var tell, first bool
	var timing PortTiming
	n.tracked(key, func(t *track) {
		now := time.Now()
		tell, first = t.openWait, t.readied.IsZero()
		if first {
			t.readied = now
			if t.numbered.IsZero() {
				t.numbered = now
			}
			timing = PortTiming{Key: key, Waited: t.openWait, Restart: t.restored, Number: t.numbered.Sub(t.asked), Ready: now.Sub(t.asked)}
		}
		t.announce = first && t.openWait
		t.standing, t.unknown, t.promised, t.openWait = []uint32{ofport}, false, false, false
		t.waitSince, t.tellFrom, t.cause, t.told, t.toldCause, t.attempts = time.Time{}, time.Time{}, why{}, time.Time{}, "", 0
	})
	if tell {
		n.event(ctx, NetworkReady, iface, fmt.Sprintf("flows of interface %s are installed on OpenFlow port %d", iface.Key, ofport))
	}
	if first && n.cfg.Observer.Port != nil {
		n.cfg.Observer.Port(timing)
	}
	return nil
}

// Late implements PortSink: the port is still not there. The Pod is told once
// the wait has lasted Config.NotReadyAfter, once, and again only when the cause
// changes and Config.NotReadyRepeat has passed.
func (n *Network) Late(ctx context.Context, key PortKey, cause error) {
	iface, ok := n.store.ByName(key.Name)
	if !ok || (key.Gen != "" && key.Gen != iface.Gen) || iface.State != ifstore.StateWaiting {
		return
	}
	if cause != nil && !errors.Is(cause, ErrBusy) {
		n.tracked(iface.Key, func(t *track) { t.cause = whyOf(cause) })
	}
	n.tellIfLate(ctx, iface)
}

// tellIfLate sends the event of an overdue wait, with the cause known by now.
func (n *Network) tellIfLate(ctx context.Context, iface ifstore.Interface) {
	n.telling.Lock()
	defer n.telling.Unlock()
	var tell bool
	var cause string
	var waited time.Duration
	n.tracked(iface.Key, func(t *track) {
		now := time.Now()
		if t.waitSince.IsZero() {
			return // ready by now
		}
		waited, cause = now.Sub(t.waitSince), t.cause.text
		switch {
		case waited < n.cfg.NotReadyAfter, now.Before(t.tellFrom):
		case t.told.IsZero(), cause != t.toldCause && now.Sub(t.told) >= n.cfg.NotReadyRepeat:
			tell = true
		}
	})
	// What a reader of the store sees is what the event says. Nobody is told of
	// an interface whose Delete has begun since the caller looked.
	_, err := n.store.Update(iface.Key, iface.Gen, func(i *ifstore.Interface) error {
		switch {
		case i.State != ifstore.StateWaiting:
			return ErrOvertaken
		case cause == "" || i.Waiting == cause:
			return errUnchanged
		}
		i.Waiting = cause
		return nil
	})
	if !tell || err != nil && !errors.Is(err, errUnchanged) {
		return
	}
	n.tracked(iface.Key, func(t *track) { t.told, t.toldCause, t.openWait = time.Now(), cause, true })
	n.event(ctx, NetworkNotReady, iface, fmt.Sprintf("interface %s (port %s) has no network after %v, waiting for: %s", iface.Key, iface.Name, waited.Round(time.Second), cause))
}

// errUnchanged leaves an Update without a change; it goes no further.
var errUnchanged = errors.New("unchanged")

func (n *Network) event(ctx context.Context, kind EventType, iface ifstore.Interface, message string) {
	if n.cfg.Events != nil {
		n.cfg.Events.Event(ctx, Event{Type: kind, Key: iface.Key, Pod: iface.Pod, Message: message, Time: time.Now()})
	}
}
