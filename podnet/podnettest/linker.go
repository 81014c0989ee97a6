package podnettest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Linker is a podnet.Linker, Announcer, Prober and OrphanUnlinker in memory.
// Methods may be called concurrently.
type Linker struct {
	Faults

	mu    sync.Mutex
	links map[string]podnet.Request // by host interface name
	dead  map[string]bool           // container ids
}

// NewLinker returns a Linker without cables.
func NewLinker() *Linker {
	return &Linker{links: make(map[string]podnet.Request), dead: make(map[string]bool)}
}

// HostName is the host interface name that Link gives.
func HostName(key ifstore.Key) string {
	sum := sha256.Sum256([]byte(key.String()))
	return fmt.Sprintf("pod%x", sum[:6])
}

// Kill makes a container disappear with its end of the cables.
func (l *Linker) Kill(containerID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[containerID] = true
}

// Revive takes a Kill back: a container of that id exists again.
func (l *Linker) Revive(containerID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.dead, containerID)
}

// Names returns the host interfaces, sorted.
func (l *Linker) Names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.links))
}

// Link implements podnet.Linker.
func (l *Linker) Link(ctx context.Context, req podnet.Request) (podnet.Link, error) {
	if err := l.enter(ctx, "Link", req.Key.String()); err != nil {
		return podnet.Link{}, err
	}
	if err := ctx.Err(); err != nil {
		return podnet.Link{}, err
	}
	link := podnet.Link{Name: HostName(req.Key), MAC: req.MAC, MTU: req.MTU}
	if link.MAC.IsZero() {
		sum := sha256.Sum256([]byte("mac" + req.Key.String()))
		copy(link.MAC[:], sum[:])
		link.MAC[0] = link.MAC[0]&^1 | 2
	}
	if link.MTU == 0 {
		link.MTU = 1500
	}
	l.mu.Lock()
	_, taken := l.links[link.Name]
	if !taken {
		l.links[link.Name] = req
	}
	l.mu.Unlock()
	if taken {
		return podnet.Link{}, fmt.Errorf("host interface %s exists", link.Name)
	}
	if err := l.leave(ctx, "Link", req.Key.String()); err != nil {
		l.drop(link.Name) // the contract: nothing is left on error
		return podnet.Link{}, err
	}
	return link, nil
}

func (l *Linker) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, name)
}

// Unlink implements podnet.Linker.
func (l *Linker) Unlink(ctx context.Context, iface ifstore.Interface) error {
	if err := l.enter(ctx, "Unlink", iface.Key.String()); err != nil {
		return err
	}
	l.drop(iface.Name)
	return l.leave(ctx, "Unlink", iface.Key.String())
}

// UnlinkOrphan implements podnet.OrphanUnlinker.
func (l *Linker) UnlinkOrphan(ctx context.Context, key ifstore.Key) error {
	if err := l.enter(ctx, "UnlinkOrphan", key.String()); err != nil {
		return err
	}
	l.drop(HostName(key))
	return nil
}

// Check implements podnet.Linker.
func (l *Linker) Check(ctx context.Context, iface ifstore.Interface) error {
	if err := l.enter(ctx, "Check", iface.Key.String()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.links[iface.Name]; !ok {
		return fmt.Errorf("host interface %s is missing", iface.Name)
	}
	return nil
}

// Announce implements podnet.Announcer.
func (l *Linker) Announce(ctx context.Context, iface ifstore.Interface) error {
	return l.enter(ctx, "Announce", iface.Key.String())
}

// Alive implements podnet.Prober.
func (l *Linker) Alive(ctx context.Context, iface ifstore.Interface) (bool, error) {
	if err := l.enter(ctx, "Alive", iface.Key.String()); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.dead[iface.ContainerID], nil
}
