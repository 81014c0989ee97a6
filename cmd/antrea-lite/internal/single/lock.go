package single

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Lock is held until Close or the end of the process, kill -9 included.
type Lock struct{ f *os.File }

func (l *Lock) writePID() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

func heldError(path string, f *os.File) error {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid := strings.TrimSpace(string(b))
	if err != nil || pid == "" {
		pid = "unknown"
	}
	return fmt.Errorf("another antrea-lite agent (pid %s) serves this bridge: it holds %s; end it first, or give this one another bridge", pid, path)
}
