package podnet

// Kept returns how much a Network remembers about interfaces, for tests that
// look for leaks.
func (n *Network) Kept() (tracks, adds, removals, locks int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.tracks), len(n.adds), len(n.removals), len(n.pods.locks) + len(n.containers.locks)
}
