package podflows

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// SetNode changes the node's part: the gateway has another number or address.
// What changed is sent together. After an error the switch may have the
// old or the new flows; the next replay writes the new ones. Before the first
// replay nothing is sent.
func (i *Installer) SetNode(ctx context.Context, node Node) error {
	node, err := node.validate()
	if err != nil {
		return fmt.Errorf("podflows: %w", err)
	}
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	i.mu.Lock()
	i.node = node
	if i.round == 0 {
		i.mu.Unlock()
		return nil
	}
	mods, answers := i.nodeParts()
	stays := byKey(append(slices.Clone(mods), answers...))
	var change []ofp.FlowMod
	for key, m := range i.standing {
		if _, ok := stays[key]; !ok {
			change = append(change, strictDelete(m, cookieFor(0, nodeID), ownerMask|idMask))
		}
	}
	maps.Copy(i.standing, stays)
	i.mu.Unlock()

	// Not under the lock: the sender waits for a replay, and that takes it.
	if _, err := i.applyNode(ctx, i.sender, append(change, mods...), answers); err != nil {
		return fmt.Errorf("change the node's flows: %w", err)
	}
	i.mu.Lock()
	i.standing = stays
	i.mu.Unlock()
	return nil
}
