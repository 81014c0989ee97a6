package fakehns

import (
	"context"
	"time"
)

// The functions here make values for Server.Intercept.

// Hang holds each call of op until release ends, and carries it out then; or until the
// server is closed or the caller's process is gone.
func Hang(release context.Context, op string) Interceptor {
	return func(ctx context.Context, c Call) *Reply {
		if c.Op == op {
			select {
			case <-release.Done():
			case <-ctx.Done():
				return Fail(ServerUnavailable, "The RPC server is unavailable. ")
			}
		}
		return nil
	}
}

// Delay holds each call of op for d, and carries it out then.
func Delay(op string, d time.Duration) Interceptor {
	return func(ctx context.Context, c Call) *Reply {
		if c.Op == op {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
		return nil
	}
}

// Refuse answers each call of op with a failure, and carries out none.
func Refuse(op string, code uint32, text string) Interceptor {
	return func(ctx context.Context, c Call) *Reply {
		if c.Op == op {
			return Fail(code, text)
		}
		return nil
	}
}

// First asks the functions in their order; the first reply is it.
func First(fs ...Interceptor) Interceptor {
	return func(ctx context.Context, c Call) *Reply {
		for _, f := range fs {
			if r := f(ctx, c); r != nil {
				return r
			}
		}
		return nil
	}
}
