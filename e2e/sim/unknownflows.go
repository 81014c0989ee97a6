package sim

import (
	"slices"
)

// unknownFlows are flows that no agent can know of: a stranger deleted the row of
// their interface and the agent ended before it had taken them back, because the
// switch did not answer. The next agent takes them away with its first replay and
// cannot do so before; until then a row of that name may come and go.
type unknownFlows struct {
	numbers map[int][]uint32 // by container
}

// atStart finds those that are there when an agent begins.
func (u *unknownFlows) atStart(n *node) {
	rows := n.bridge.Names()
	found := make(map[int][]uint32)
	for c, key := range n.keys {
		if slices.Contains(rows, n.name(c)) {
			continue
		}
		if numbers := n.of.numbers(key); len(numbers) > 0 {
			found[c] = numbers
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	u.numbers = found
}

// replayed ends the excuse.
func (u *unknownFlows) replayed(n *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(u.numbers)
}

// known returns the numbers on which an agent should know of flows of c.
func (u *unknownFlows) known(n *node, c int) []uint32 {
	numbers := n.of.numbers(n.keys[c])
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(numbers, func(number uint32) bool { return slices.Contains(u.numbers[c], number) })
}
