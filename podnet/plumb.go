package podnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// Numbers that Open vSwitch gives to ordinary ports. Outside of them are
// "unset" (0), reserved ports, and -1 in the clothes of 0xffffffff, which OVS
// would accept in a flow without an error.
const (
	minOFPort = 1
	maxOFPort = 0xfeff
)

func validNumber(name string, ofport uint32) error {
	if ofport < minOFPort || ofport > maxOFPort {
		return fmt.Errorf("port %s: %w: %d is not in 1..%d", name, ErrNoNumber, ofport, maxOFPort)
	}
	return nil
}

// number returns the number that life of the port has now: what OVSDB says
// and, where there is an OpenFlow session to ask, only if that agrees. An
// error for which portGone holds says that it has none; any other leaves it open.
func (n *Network) number(ctx context.Context, key PortKey) (uint32, error) {
	ofport, err := n.cfg.Bridge.OFPort(ctx, key)
	if err != nil {
		return 0, err
	}
	if err := validNumber(key.Name, ofport); err != nil {
		return 0, err
	}
	if n.cfg.Ports == nil {
		return ofport, nil
	}
	switch listed, ok := n.cfg.Ports.PortState(key.Name); {
	case !ok:
		return 0, fmt.Errorf("port %s: %w: OVSDB says OpenFlow port %d, the OpenFlow session does not list it", key.Name, ErrNotListed, ofport)
	case listed != ofport:
		return 0, fmt.Errorf("port %s: %w: OVSDB says OpenFlow port %d, the OpenFlow session says %d", key.Name, ErrNotListed, ofport, listed)
	}
	return ofport, nil
}

// underReplay runs fn with a share of the replay lock. When a replay wants it
// alone, fn's context ends and fn runs again afterwards, so it must be
// repeatable and must read the record anew each time: the replay may have
// changed the number, or made the interface ready.
func (n *Network) underReplay(ctx context.Context, fn func(ctx context.Context) error) error {
	for {
		shared, release, err := n.replay.share(ctx)
		if err != nil {
			return err
		}
		err = func() error {
			defer release()
			return fn(shared)
		}()
		if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(shared), errReplay) {
			return err
		}
	}
}

// install puts the flows of key on number ofport. The container's lock is held.
func (n *Network) install(ctx context.Context, key ifstore.Key, ofport uint32) error {
	for {
		err := n.underReplay(ctx, func(ctx context.Context) error {
			iface, err := n.live(key)
			if err != nil {
				return err
			}
			if iface.State == ifstore.StateReady {
				return nil // a replay was quicker
			}
			return n.put(ctx, []move{{iface: iface, ofport: ofport}}, map[string]bool{key.ContainerID: true})[0]
		})
		if !errors.Is(err, ErrBusy) {
			return err
		}
		// The number was another interface's and somebody is at work on that one.
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// live returns the record of key unless it is going away.
func (n *Network) live(key ifstore.Key) (ifstore.Interface, error) {
	iface, ok := n.store.Get(key)
	if !ok || iface.State == ifstore.StateWithdrawing {
		return ifstore.Interface{}, fmt.Errorf("%w: the interface is being removed", ErrOvertaken)
	}
	return iface, nil
}

// evict takes the flows of earlier holders off number ofport before key gets
// it. OVS gives a number to one port at a time, so the record of the other is
// out of date; its own flows would go on sending its traffic to the new owner.
// held names the containers that the caller has locked.
func (n *Network) evict(ctx context.Context, key ifstore.Key, ofport uint32, held map[string]bool) error {
	for _, holder := range n.standingOn(ofport) {
		if holder == key {
			continue
		}
		if err := n.evictOne(ctx, key, holder, ofport, held); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) evictOne(ctx context.Context, key, holder ifstore.Key, ofport uint32, held map[string]bool) error {
	iface, err := n.live(holder)
	if err != nil {
		return nil // its removal is under way and touches its own flows only
	}
	if !held[holder.ContainerID] {
		var giveWay context.CancelFunc
		ctx, giveWay = context.WithCancel(ctx)
		defer giveWay()
		unlock, ok := n.containers.tryLock(holder.ContainerID, giveWay)
		if !ok {
			return fmt.Errorf("%w: OpenFlow port %d was given to %s and still carries flows of %s, which is being worked on", ErrBusy, ofport, key, holder)
		}
		defer unlock()
		if iface, err = n.live(holder); err != nil || !slices.Contains(n.trackOf(holder).standing, ofport) {
			return nil // settled meanwhile
		}
	}
	if iface.OFPort != ofport {
		// What an earlier move may have left behind; its flows belong elsewhere by now.
		return n.uninstall(ctx, iface, []uint32{ofport})
	}
	now, err := n.cfg.Bridge.OFPort(ctx, portKey(iface))
	switch {
	case err == nil && now == ofport:
		// For a moment only, while Open vSwitch renumbers.
		return fmt.Errorf("%w: OVSDB gives OpenFlow port %d to %s and to %s (port %s)", ErrBusy, ofport, key, holder, iface.Name)
	case err != nil && !portGone(err):
		return fmt.Errorf("OpenFlow port %d was %s's; whether it still is cannot be told: %w", ofport, holder, err)
	}
	return n.withdraw(ctx, iface, why{fmt.Sprintf("its OpenFlow port %d went to %s", ofport, key), CauseNumber})
}
