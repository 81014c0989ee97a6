package socket

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// closeTime is how long Close waits for the pipe to be gone.
const closeTime = 2 * time.Second

// ownersOnly gives all access to administrators and SYSTEM and none to anybody else.
const ownersOnly = "D:P(A;;GA;;;BA)(A;;GA;;;SY)"

// buffer is the quota of each direction. Without one a write waits for its
// reader, and a plugin that is about to end waits for nobody.
const buffer = 64 << 10

// Listen listens on the pipe at path, such as \\.\pipe\antrea-lite-cni. A pipe that
// exists belongs to a process that runs, since Windows removes it with its
// process; that is an error.
func Listen(path string) (net.Listener, error) {
	inner, err := winio.ListenPipe(path, &winio.PipeConfig{SecurityDescriptor: ownersOnly, InputBufferSize: buffer, OutputBufferSize: buffer})
	switch {
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return nil, fmt.Errorf("named pipe %s: %w: another process has it, or this one is no administrator: end that process, choose another name, or run the agent as SYSTEM or administrator", path, err)
	case err != nil:
		return nil, fmt.Errorf("named pipe %s: %w", path, err)
	}
	return newPipeListener(inner, closeTime), nil
}
