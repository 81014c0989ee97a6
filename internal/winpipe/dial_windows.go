package winpipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// Dial connects to the pipe that path means (see Name). A pipe whose instances
// are all taken is tried again until ctx ends: Open vSwitch makes the next
// instance only when it gets round to accepting. One that is not there is an
// error at once, which wraps fs.ErrNotExist; server says in the text who should
// have made it.
func Dial(ctx context.Context, path, server string) (net.Conn, error) {
	name, err := Name(path)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("named pipe %s: %w", name, context.Cause(ctx))
	}
	conn, err := winio.DialPipeContext(ctx, name)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // it waits for nothing else
		return nil, fmt.Errorf("named pipe %s: all of its instances are busy: %w: is %s stuck?", name, context.Cause(ctx), server)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("named pipe %s: %w: is %s running, and is its run directory another one?", name, cause(err), server)
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return nil, fmt.Errorf("named pipe %s: %w: Open vSwitch lets in SYSTEM and members of Administrators only", name, cause(err))
	}
	return nil, fmt.Errorf("named pipe %s: %w", name, cause(err))
}

// cause takes the name off, which the caller writes.
func cause(err error) error {
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}
