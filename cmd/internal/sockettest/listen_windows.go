package sockettest

import (
	"net"
	"testing"

	"github.com/Microsoft/go-winio"
)

// Listen listens at path, with nothing of what the agent's own listener does
// besides. The caller closes the listener.
func Listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := winio.ListenPipe(path, &winio.PipeConfig{InputBufferSize: 64 << 10, OutputBufferSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
