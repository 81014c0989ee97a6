package lab

import (
	"context"
	"fmt"
	"time"
)

// Until tries until check returns nil or ctx ends, and then returns check's
// last error.
func Until(ctx context.Context, check func() error) error {
	return Every(ctx, 10*time.Millisecond, check)
}

// Every is Until with a pause of a given length between the tries, for checks
// that cost something.
func Every(ctx context.Context, pause time.Duration, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: last: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}
