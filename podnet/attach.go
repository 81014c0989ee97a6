package podnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
)

// Add plugs one interface into the bridge and returns its record. When the
// readiness backend answers at once (Linux), the flows are in when Add
// returns; else the record's State is waiting and Config.Events tells the rest.
//
// A repeat for an interface that is there answers from the store; with other
// parameters it is ErrBadRequest. An Add of the same Pod by another container
// or a Delete of the container ends this one with ErrOvertaken. ErrTryAgain
// means that the caller should repeat it later. On any error, on a panic of a
// part and when ctx ends, everything made so far is taken back before Add
// returns; what cannot be taken back within Config.UndoTimeout goes on under
// Run. Errors are *OpError.
func (n *Network) Add(ctx context.Context, req Request) (iface ifstore.Interface, err error) {
	c := n.startCall(OpAdd, req.Key, req.Pod)
	callCtx := ctx
	defer func() { err = c.end(callCtx, err) }()

	if err := c.step("validate", func() error { return req.validate(n.cfg.Addresses != nil) }); err != nil {
		return ifstore.Interface{}, err
	}
	if err := c.step("start", func() error { return n.ensureReconciled(ctx) }); err != nil {
		return ifstore.Interface{}, err
	}
	callCtx, finished := n.beginAdd(ctx, req)
	defer finished()
	unlock, err := n.lockForAdd(callCtx, c, req)
	if err != nil {
		return ifstore.Interface{}, err
	}
	defer unlock()
	if have, ok := n.store.Get(req.Key); ok {
		return n.addAgain(callCtx, c, have, req)
	}
	a := &attachment{n: n, call: c, req: req, iface: ifstore.Interface{Key: req.Key, Pod: req.Pod, NetNS: req.NetNS, VLAN: req.VLAN, Created: c.begun}}
	return a.run(callCtx)
}

// lockForAdd takes the Pod's lock and then the container's.
func (n *Network) lockForAdd(ctx context.Context, c *call, req Request) (unlock func(), err error) {
	unlockPod, unlockContainer := func() {}, func() {}
	err = c.step("lock", func() (err error) {
		if req.Pod.Name != "" {
			if unlockPod, err = n.pods.lock(ctx, podName{req.Pod.Namespace, req.Pod.Name}); err != nil {
				return fmt.Errorf("another Add of the Pod has not ended: %w", err)
			}
		}
		if unlockContainer, err = n.containers.lock(ctx, req.ContainerID); err != nil {
			unlockPod()
			return fmt.Errorf("another operation of the container has not ended: %w", err)
		}
		return nil
	})
	return func() {
		unlockContainer()
		unlockPod()
	}, err
}

// addAgain answers a repeated Add. It takes nothing back on an error: what is
// there belongs to the Add that made it.
func (n *Network) addAgain(ctx context.Context, c *call, have ifstore.Interface, req Request) (ifstore.Interface, error) {
	if err := c.step("record", func() error {
		if have.State == ifstore.StateWithdrawing {
			return fmt.Errorf("%w: an earlier interface of that key is still being removed", ErrTryAgain)
		}
		return req.mismatch(have)
	}); err != nil {
		return ifstore.Interface{}, err
	}
	if have.State == ifstore.StateReady || n.trackOf(have.Key).promised {
		return have, nil
	}
	// An earlier process was cut short, or the port was lost since.
	return n.makeReady(ctx, c, have)
}

// attachment is one Add at work.
type attachment struct {
	n     *Network
	call  *call
	req   Request
	iface ifstore.Interface // as far as it has come
	undo  undoStack
}

func (a *attachment) run(ctx context.Context) (iface ifstore.Interface, err error) {
	done := false
	defer func() {
		if done {
			return
		}
		// Also when a part panics: the panic goes on after this.
		if undoErr := a.takeBack(ctx); undoErr != nil && err != nil {
			err = fmt.Errorf("%w; it goes on in the background: %w", err, undoErr)
		}
	}()
	for _, step := range []struct {
		name string
		fn   func(context.Context) error
	}{
		{"allocate", a.allocate},
		{"link", a.link},
		{"record", a.record},
		{"port", a.port},
	} {
		if err := a.call.step(step.name, func() error { return step.fn(ctx) }); err != nil {
			return ifstore.Interface{}, err
		}
	}
	// Before anything that has to be taken back is asked for: takeBack runs these in reverse.
	a.undo.push("flows", func(ctx context.Context) error { return a.n.clearFlows(ctx, a.iface.Key) })
	a.undo.push("number", func(context.Context) error { a.n.cfg.Readiness.Cancel(portKey(a.iface)); return nil })
	iface, err = a.n.makeReady(ctx, a.call, a.iface)
	if err != nil {
		return ifstore.Interface{}, err
	}
	// Whoever cancelled this Add counts on it to leave nothing behind.
	if ctx.Err() != nil {
		return ifstore.Interface{}, context.Cause(ctx)
	}
	done = true
	return iface, nil
}

// allocate gets addresses, unless they came with the request, and looks for
// others who have them.
func (a *attachment) allocate(ctx context.Context) error {
	if a.req.IPAM == "" && !a.req.NoIPAM && a.n.cfg.Addresses != nil {
		_, release, err := a.n.leases.share(ctx)
		if err != nil {
			return err
		}
		defer release()
		// Pushed first: a call that is cut short may have reserved something.
		a.undo.push("addresses", func(ctx context.Context) error { return a.n.cfg.Addresses.Release(ctx, a.req.Key) })
		alloc, err := a.n.cfg.Addresses.Allocate(ctx, a.req)
		if err != nil {
			return err
		}
		if len(alloc.Addresses) == 0 {
			return fmt.Errorf("%s gave no address", alloc.IPAM)
		}
		a.req.IPAM, a.req.Addresses, a.req.Routes = alloc.IPAM, alloc.Addresses, alloc.Routes
		a.iface.Leased = true
		if err := validateAddressing(a.req); err != nil {
			return fmt.Errorf("what %s gave is of no use: %w", alloc.IPAM, err)
		}
	}
	a.iface.IPAM, a.iface.Addresses, a.iface.Routes = a.req.IPAM, a.req.Addresses, a.req.Routes
	return a.n.conflict(a.iface, a.req.MAC)
}

func (a *attachment) link(ctx context.Context) error {
	link, err := a.n.cfg.Linker.Link(ctx, a.req)
	if err != nil {
		return err
	}
	a.iface.Name, a.iface.MAC, a.iface.MTU, a.iface.Extra = link.Name, link.MAC, link.MTU, link.Extra
	a.undo.push("link", func(ctx context.Context) error { return a.n.cfg.Linker.Unlink(ctx, a.iface) })
	switch {
	case link.Name == "" || len(link.Name) > maxIfName:
		return fmt.Errorf("host interface name %q does not have 1 to %d bytes; OpenFlow could not tell it from others", link.Name, maxIfName)
	case a.req.HostDevice != "" && link.Name != a.req.HostDevice:
		return fmt.Errorf("%w: host device %q was asked for; this node's backend makes its own cables, here %s", ErrBadRequest, a.req.HostDevice, link.Name)
	case !a.req.MAC.IsZero() && link.MAC != a.req.MAC:
		return fmt.Errorf("the interface has MAC address %s, %s was asked for", link.MAC, a.req.MAC)
	}
	return nil
}

// record puts the interface into the store, where it keeps its name and
// addresses from others from now on.
func (a *attachment) record(context.Context) error {
	a.iface.State = ifstore.StateLinked
	if err := a.n.store.Insert(a.iface); err != nil {
		return heldByOther(err)
	}
	a.n.startTrack(a.iface.Key, track{})
	a.undo.push("record", func(context.Context) error { a.n.forget(a.iface.Key); return nil })
	return nil
}

func (a *attachment) port(ctx context.Context) error {
	n, outcome := a.n, error(nil)
	a.undo.push("port", func(ctx context.Context) error {
		return n.dropPort(ctx, a.iface, errors.Is(outcome, ErrOutcomeUnknown))
	})
	now := time.Now()
	key, err := n.cfg.Bridge.AddPort(ctx, Port{
		PortKey:     PortKey{Name: a.iface.Name},
		ExternalIDs: EncodeExternalIDs(n.cfg.Owner, a.iface),
	})
	if err != nil {
		outcome = err
		if errors.Is(err, ErrPortExists) {
			return fmt.Errorf("host interface name %s of %s is taken by a port that is none of this agent's interfaces; remove that port from the bridge: %w", a.iface.Name, a.iface.Key, err)
		}
		return err
	}
	a.iface, err = n.store.Update(a.iface.Key, "", func(i *ifstore.Interface) error {
		i.Gen, i.State, i.Waiting = key.Gen, ifstore.StateWaiting, "an OpenFlow port number"
		return nil
	})
	n.tracked(a.iface.Key, func(t *track) {
		t.asked, t.waitSince, t.cause = now, a.iface.Created, why{a.iface.Waiting, CauseNumber}
	})
	return err
}

// makeReady asks for the number of a port and, if it is there, installs the
// flows. The container's lock is held.
func (n *Network) makeReady(ctx context.Context, c *call, iface ifstore.Interface) (ifstore.Interface, error) {
	var ofport uint32
	var ok bool
	if err := c.step("number", func() (err error) {
		if ofport, ok, err = n.cfg.Readiness.Begin(ctx, portKey(iface)); err == nil && ok {
			err = validNumber(iface.Name, ofport)
		}
		return err
	}); err != nil {
		return ifstore.Interface{}, err
	}
	if !ok {
		return n.leaveWaiting(ctx, iface)
	}
	if err := c.step("flows", func() error { return n.install(ctx, iface.Key, ofport) }); err != nil {
		return ifstore.Interface{}, err
	}
	iface, found := n.store.Get(iface.Key)
	if !found {
		return ifstore.Interface{}, fmt.Errorf("%w: the interface was removed meanwhile", ErrOvertaken)
	}
	n.announce(ctx, iface)
	return iface, nil
}

// leaveWaiting notes in the port's row that no flow was sent, so that a Delete
// after a restart needs no switch, and returns the record as it is.
func (n *Network) leaveWaiting(ctx context.Context, iface ifstore.Interface) (ifstore.Interface, error) {
	var clean, first bool
	n.tracked(iface.Key, func(t *track) {
		first = t.readied.IsZero() && len(t.standing) == 0 && !t.unknown
		clean = first && t.marked == ""
		t.promised, t.openWait = first, true
	})
	if !first {
		// The backend holds back a port until it has what first flows need. This
		// one has had flows, which may stand and have to go: Run looks at it.
		n.cfg.Readiness.Cancel(portKey(iface))
	}
	if clean {
		if err := n.mark(ctx, iface, string(ifstore.StateWaiting)); err != nil {
			// Without the mark a later Delete asks the switch although it need not.
			klog.FromContext(ctx).V(2).Info("Could not note in OVSDB that the port has no flows yet", "port", iface.Name, "reason", err.Error())
		}
	}
	have, ok := n.store.Get(iface.Key)
	if !ok {
		return ifstore.Interface{}, fmt.Errorf("%w: the interface was removed meanwhile", ErrOvertaken)
	}
	return have, nil
}

// announce tells the neighbours, after the flows are in: before that the
// switch would drop the announcement (antrea#129).
func (n *Network) announce(ctx context.Context, iface ifstore.Interface) {
	announcer, ok := n.cfg.Linker.(Announcer)
	if !ok || len(iface.Addresses) == 0 {
		return
	}
	if err := announcer.Announce(ctx, iface); err != nil {
		klog.FromContext(ctx).Info("Could not announce the addresses of an interface; neighbours learn them later", "interface", iface.Key.String(), "pod", iface.Pod.String(), "reason", err.Error())
	}
}
