package gateway

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Watch calls changed, with no more than one call under way, whenever the
// kernel tells of a change of the interface or of any address, until ctx ends
// or the kernel's messages are lost; then the caller looks for itself and
// watches again.
func Watch(ctx context.Context, name string, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2)
	onError := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	links := make(chan netlink.LinkUpdate, 64)
	addrs := make(chan netlink.AddrUpdate, 64)
	if err := netlink.LinkSubscribeWithOptions(links, ctx.Done(), netlink.LinkSubscribeOptions{ErrorCallback: onError}); err != nil {
		return fmt.Errorf("watch interfaces: %w", err)
	}
	// The subscriptions close their channels once ctx has ended.
	defer drain(links)
	defer cancel()
	if err := netlink.AddrSubscribeWithOptions(addrs, ctx.Done(), netlink.AddrSubscribeOptions{ErrorCallback: onError}); err != nil {
		return fmt.Errorf("watch addresses: %w", err)
	}
	defer drain(addrs)
	defer cancel()
	// 0: it is not there yet, and an address may be its own.
	index := 0
	if link, err := netlink.LinkByName(name); err == nil {
		index = link.Attrs().Index
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("watch interfaces: %w", err)
		case u, ok := <-links:
			if !ok {
				return fmt.Errorf("watch interfaces: the kernel's messages ended")
			}
			if u.Attrs().Name == name {
				index = u.Attrs().Index
				changed()
			}
		case u, ok := <-addrs:
			if !ok {
				return fmt.Errorf("watch addresses: the kernel's messages ended")
			}
			if index == 0 || u.LinkIndex == index {
				changed()
			}
		}
	}
}

// drain lets a subscription that is about to send end.
func drain[T any](c <-chan T) {
	for range c {
	}
}
