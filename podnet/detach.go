package podnet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
)

// Delete takes an interface out: flows, port, record, cable, addresses, in
// that order, so that nothing is free while something before it still uses it.
// It ends an Add of the container that is under way. Every missing piece counts
// as done; a key that nobody knows succeeds, and its addresses are released
// nevertheless.
//
// When something cannot be removed now, the interface becomes withdrawing and
// its removal goes on under Run. If that may help, Delete waits for it until ctx
// ends. An error that wraps ErrTryAgain means: repeat the Delete, it joins the
// removal that is under way. Errors are *OpError.
func (n *Network) Delete(ctx context.Context, key ifstore.Key) (err error) {
	have, _ := n.store.Get(key)
	c := n.startCall(OpDelete, key, have.Pod)
	defer func() { err = c.end(ctx, err) }()

	if err := c.step("validate", func() error { return validateKey(key) }); err != nil {
		return err
	}
	if err := c.step("start", func() error { return n.ensureReconciled(ctx) }); err != nil {
		return err
	}
	n.cancelAdds(key.ContainerID)
	var unlock func()
	if err := c.step("lock", func() (err error) {
		if unlock, err = n.containers.lock(ctx, key.ContainerID); err != nil {
			return fmt.Errorf("%w: another operation of the container has not ended: %w", ErrTryAgain, err)
		}
		return nil
	}); err != nil {
		return err
	}
	unlock = sync.OnceFunc(unlock)
	defer unlock() // also when a part panics
	err = n.remove(ctx, c, key)
	if err == nil {
		return nil
	}
	job := n.startRemoval(key, err)
	unlock()
	if !passing(err) {
		return fmt.Errorf("%w: %w", ErrTryAgain, err)
	}
	return c.step("removal", func() error { return job.wait(ctx) })
}

// remove takes the interface out step by step. What an earlier attempt has
// done is not done again. The container's lock is held. c may be nil.
func (n *Network) remove(ctx context.Context, c *call, key ifstore.Key) error {
	step := func(name string, fn func() error) error { return c.step(name, fn) }
	iface, err := n.store.Update(key, "", markWithdrawing)
	if errors.Is(err, ifstore.ErrNotFound) {
		return n.removeUnknown(ctx, c, key)
	}
	if err != nil {
		return err
	}
	c.setPod(iface.Pod)
	n.cfg.Readiness.Cancel(portKey(iface))
	if err := step("flows", func() error { return n.markAndClear(ctx, iface) }); err != nil {
		return err
	}
	if err := step("port", func() error { return n.dropPort(ctx, iface, true) }); err != nil {
		return err
	}
	if iface.Name != "" {
		if err := step("link", func() error { return n.cfg.Linker.Unlink(ctx, iface) }); err != nil {
			return err
		}
	}
	// Before the addresses: once they are free, an Add may get them at any moment.
	n.forget(key)
	return step("addresses", func() error { return n.release(ctx, key) })
}

// markWithdrawing is the first step of every removal: from now on readers of
// the store skip the record, because its number may be free in a moment.
func markWithdrawing(i *ifstore.Interface) error {
	i.State, i.Waiting = ifstore.StateWithdrawing, ""
	return nil
}

// removeUnknown does what can be done for a key that is in no record: the
// process may have been killed between two steps of an earlier Delete.
func (n *Network) removeUnknown(ctx context.Context, c *call, key ifstore.Key) error {
	if orphans, ok := n.cfg.Linker.(OrphanUnlinker); ok {
		if err := c.step("link", func() error { return orphans.UnlinkOrphan(ctx, key) }); err != nil {
			return err
		}
	}
	return c.step("addresses", func() error { return n.release(ctx, key) })
}

// markAndClear notes the removal where a restart finds it and takes the flows
// off the switch, both at once: either may have to wait for a peer that is away.
func (n *Network) markAndClear(ctx context.Context, iface ifstore.Interface) error {
	marked := make(chan error, 1)
	go func() {
		if iface.Gen == "" {
			marked <- nil
			return
		}
		err := n.mark(ctx, iface, string(ifstore.StateWithdrawing))
		if errors.Is(err, ErrNoPort) {
			err = nil // the port is gone, there is nothing left to resume
		}
		marked <- err
	}()
	err := n.clearFlows(ctx, iface.Key)
	markErr := <-marked
	if err == nil {
		// The mark is for a removal that has flows to wait for. Without any,
		// deleting the port is the next thing that happens, or fails by itself.
		return nil
	}
	return join(err, markErr)
}

func (n *Network) release(ctx context.Context, key ifstore.Key) error {
	if n.cfg.Addresses == nil {
		return nil
	}
	return n.cfg.Addresses.Release(ctx, key)
}
