package sockettest

import (
	"net"
	"testing"
)

// Listen listens at path, with nothing of what the agent's own listener does
// besides. The caller closes the listener.
func Listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
