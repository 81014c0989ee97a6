package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

// ErrNoNetwork: HNS does not have the network. It comes with podnet.ErrTryAgain,
// as the agent makes the network again (EnsureNetwork).
var ErrNoNetwork = errors.New("no such HNS network")

// ensured is the outcome of EnsureNetwork.
type ensured struct {
	network Network
	created bool
}

// EnsureNetwork finds the network or makes it. Making one on a host adapter
// moves the adapter under a new Hyper-V switch, which cuts the node's network
// for some seconds; the agent therefore calls this at start and when HNS was
// seen to have lost the network, never an ADD. A network of that name that is
// not as configured is an error that names the difference: to change it is to
// cut every container on it.
func (l *Linker) EnsureNetwork(ctx context.Context) (n Network, created bool, err error) {
	e, err := l.ensures.Do(ctx, struct{}{})
	return e.network, e.created, err
}

func (l *Linker) ensureOnce(ctx context.Context, batch []struct{}) []join.Result[ensured] {
	e, err := l.ensureNetwork(ctx)
	return slices.Repeat([]join.Result[ensured]{{Value: e, Err: err}}, len(batch))
}

func (l *Linker) ensureNetwork(ctx context.Context) (ensured, error) {
	n, err := l.findNetwork(ctx)
	if !errors.Is(err, ErrNoNetwork) {
		return ensured{network: n}, err
	}
	want := l.cfg.Network
	if want.Adapter == "" {
		return ensured{}, fmt.Errorf("%w; name the uplink (a host adapter) on which to make it", err)
	}
	n, err = l.guard.CreateNetwork(ctx, want)
	switch {
	case errors.Is(err, ErrTaken):
		// Somebody made it since we looked, or an earlier create of ours that was too late.
		found, findErr := l.findNetwork(ctx)
		if errors.Is(findErr, ErrNoNetwork) {
			return ensured{}, fmt.Errorf("make HNS network %q on adapter %q: %w; another network may use the adapter: see Get-HnsNetwork", want.Name, want.Adapter, err)
		}
		return ensured{network: found}, findErr
	case err != nil:
		return ensured{}, fmt.Errorf("make HNS network %q on adapter %q: %w", want.Name, want.Adapter, err)
	}
	if err := l.fits(n); err != nil {
		return ensured{}, err
	}
	l.remember(n)
	return ensured{network: n, created: true}, nil
}

// findNetwork asks HNS, whatever is remembered.
func (l *Linker) findNetwork(ctx context.Context) (Network, error) {
	name := l.cfg.Network.Name
	objects, err := l.guard.List(ctx, Query{Kind: Networks, Name: name})
	if err != nil {
		return Network{}, fmt.Errorf("look for HNS network %q: %w", name, err)
	}
	switch len(objects.Networks) {
	case 0:
		l.remember(Network{})
		return Network{}, fmt.Errorf("%w: %w: %q", podnet.ErrTryAgain, ErrNoNetwork, name)
	case 1:
	default:
		return Network{}, fmt.Errorf("HNS has %d networks called %q, with ids %s and %s; remove those that are not podnet's (Remove-HnsNetwork)",
			len(objects.Networks), name, objects.Networks[0].ID, objects.Networks[1].ID)
	}
	n := objects.Networks[0]
	if err := l.fits(n); err != nil {
		return Network{}, err
	}
	l.remember(n)
	return n, nil
}

// fits compares a network that HNS has with the configured one.
func (l *Linker) fits(n Network) error {
	want := l.cfg.Network
	const remedy = "; give podnet another network's name, or remove this one when no container uses it (Remove-HnsNetwork)"
	if n.Type != want.Type {
		return fmt.Errorf("HNS network %q (%s) is of type %q, want %q%s", n.Name, n.ID, n.Type, want.Type, remedy)
	}
	if want.Adapter != "" && n.Adapter != "" && n.Adapter != want.Adapter {
		return fmt.Errorf("HNS network %q (%s) is on adapter %q, want %q%s", n.Name, n.ID, n.Adapter, want.Adapter, remedy)
	}
	for _, s := range want.Subnets {
		// A network without subnets takes any address.
		if len(n.Subnets) > 0 && !slices.ContainsFunc(n.Subnets, func(has Subnet) bool { return covers(has, s) }) {
			return fmt.Errorf("HNS network %q (%s) has no subnet with %s%s", n.Name, n.ID, s.Prefix, remedy)
		}
	}
	return nil
}

// covers reports whether every address of want is one of has.
func covers(has, want Subnet) bool {
	return has.Prefix.Bits() <= want.Prefix.Bits() && has.Prefix.Contains(want.Prefix.Addr())
}

// resolve returns the network, asking HNS only when it is not known.
func (l *Linker) resolve(ctx context.Context) (Network, error) {
	if n, ok := l.known(); ok {
		return n, nil
	}
	return l.resolves.Do(ctx, struct{}{})
}

func (l *Linker) resolveOnce(ctx context.Context, batch []struct{}) []join.Result[Network] {
	n, ok := l.known()
	var err error
	if !ok {
		n, err = l.findNetwork(ctx)
	}
	return slices.Repeat([]join.Result[Network]{{Value: n, Err: err}}, len(batch))
}

func (l *Linker) known() (Network, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.network, !l.network.ID.IsZero()
}

func (l *Linker) remember(n Network) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.network = n
}

// lost forgets the network that HNS says is gone and looks for it again: a
// network that was made anew has another id.
func (l *Linker) lost(ctx context.Context, n Network) (Network, error) {
	klog.FromContext(ctx).Info("HNS says that its network is gone; looking for it again", "network", n.Name, "id", n.ID.String())
	l.mu.Lock()
	if l.network.ID == n.ID {
		l.network = Network{}
	}
	l.mu.Unlock()
	return l.resolve(ctx)
}
