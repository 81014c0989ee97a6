package podnet

import (
	"context"

	"github.com/antrea-lite/podnet/ifstore"
)

// TellIfLate is what a look at the store leads to, for tests in which that look was a while ago.
func (n *Network) TellIfLate(ctx context.Context, iface ifstore.Interface) { n.tellIfLate(ctx, iface) }

// Kept returns how much a Network remembers about interfaces, for tests that
// look for leaks.
func (n *Network) Kept() (tracks, adds, removals, locks int) {
	n.pods.mu.Lock()
	locks = len(n.pods.locks)
	n.pods.mu.Unlock()
	n.containers.mu.Lock()
	locks += len(n.containers.locks)
	n.containers.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.tracks), len(n.adds), len(n.removals), locks
}
