package windows

import (
	"context"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Attacher is what Sandboxes needs of *podnet.Network.
type Attacher interface {
	Add(ctx context.Context, req podnet.Request) (ifstore.Interface, error)
	Delete(ctx context.Context, key ifstore.Key) error
	CheckAgainst(ctx context.Context, key ifstore.Key, want podnet.Want) error
	Interfaces() []ifstore.Interface
}

// Sandboxes stands before a Network and knows what Windows runtimes ask: an ADD
// for each container of a Pod, of which only the sandbox gets an interface; the
// others are answered with the sandbox's. Only the sandbox's own DEL removes
// anything.
type Sandboxes struct {
	network Attacher
}

// NewSandboxes returns a Sandboxes before n.
func NewSandboxes(n Attacher) *Sandboxes { return &Sandboxes{network: n} }

// Add plugs a sandbox in, or answers for a container that shares a sandbox's
// network. An error for the latter undoes nothing: the interface is not its own.
func (s *Sandboxes) Add(ctx context.Context, req podnet.Request) (ifstore.Interface, error) {
	ns, err := ParseNetNS(req.NetNS)
	if err != nil {
		return ifstore.Interface{}, err
	}
	req.NetNS = ns.String() // one spelling, so that a repeated ADD is known as one
	if ns.Container == "" {
		return s.network.Add(ctx, req)
	}
	key := ifstore.Key{ContainerID: ns.Container, IfName: req.IfName}
	iface, ok := s.find(key)
	if !ok || iface.State == ifstore.StateWithdrawing {
		return ifstore.Interface{}, fmt.Errorf("%w: container %s shares the network of sandbox %s, which has no interface %q now", podnet.ErrTryAgain, req.ContainerID, ns.Container, req.IfName)
	}
	if req.Pod.Name != "" && req.Pod.String() != iface.Pod.String() {
		return ifstore.Interface{}, fmt.Errorf("%w: container %s of Pod %q names sandbox %s, which is Pod %q's", podnet.ErrBadRequest, req.ContainerID, req.Pod, ns.Container, iface.Pod)
	}
	return iface, nil
}

// Delete removes a sandbox's interface. netNS is CNI_NETNS of the DEL; it is
// often empty. A container that shares a sandbox's network has nothing to remove.
func (s *Sandboxes) Delete(ctx context.Context, key ifstore.Key, netNS string) error {
	// A DEL must not fail for what it does not need.
	if ns, err := ParseNetNS(netNS); err == nil && ns.Container != "" && ns.Container != key.ContainerID {
		return nil
	}
	return s.network.Delete(ctx, key)
}

// CheckAgainst compares an interface, or that of the container's sandbox, with
// what the caller was told.
func (s *Sandboxes) CheckAgainst(ctx context.Context, key ifstore.Key, want podnet.Want) error {
	ns, err := ParseNetNS(want.NetNS)
	if err != nil {
		return err
	}
	want.NetNS = ns.String()
	if ns.Container != "" {
		key.ContainerID, want.NetNS = ns.Container, ""
	}
	return s.network.CheckAgainst(ctx, key, want)
}

func (s *Sandboxes) find(key ifstore.Key) (ifstore.Interface, bool) {
	for _, i := range s.network.Interfaces() {
		if i.Key == key {
			return i, true
		}
	}
	return ifstore.Interface{}, false
}
