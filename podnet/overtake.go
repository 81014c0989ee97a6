package podnet

import (
	"context"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
)

// adding is an Add that has begun, waiting for its locks or running.
type adding struct {
	key    ifstore.Key
	pod    podName
	cancel context.CancelCauseFunc
}

// beginAdd registers an Add and ends the older ones that it makes pointless:
// those of the same Pod in another container. The runtime has given up on that
// sandbox, and its Add may be waiting for a number that never comes. An Add of
// the same container is no rival: it waits and then answers from the store.
func (n *Network) beginAdd(ctx context.Context, req Request) (addCtx context.Context, finished func()) {
	addCtx, cancel := context.WithCancelCause(ctx)
	self := &adding{key: req.Key, pod: podName{req.Pod.Namespace, req.Pod.Name}, cancel: cancel}
	n.mu.Lock()
	defer n.mu.Unlock()
	for older := range n.adds {
		if self.pod.name != "" && older.pod == self.pod && older.key.ContainerID != self.key.ContainerID {
			older.cancel(fmt.Errorf("%w: container %s of the same Pod %s is being added now", ErrOvertaken, self.key.ContainerID, req.Pod))
		}
	}
	n.adds[self] = struct{}{}
	return addCtx, func() {
		n.mu.Lock()
		delete(n.adds, self)
		n.mu.Unlock()
		cancel(nil)
	}
}

// cancelAdds ends every Add of the container that has begun.
func (n *Network) cancelAdds(containerID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for a := range n.adds {
		if a.key.ContainerID == containerID {
			a.cancel(fmt.Errorf("%w: container %s is being deleted", ErrOvertaken, containerID))
		}
	}
}

// addingKeys returns the keys of all Adds that have begun.
func (n *Network) addingKeys() []ifstore.Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	keys := make([]ifstore.Key, 0, len(n.adds))
	for a := range n.adds {
		keys = append(keys, a.key)
	}
	return keys
}
