package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/vswitch"
)

// running runs do, for limit at most, while a client of OVSDB runs.
func running(ctx context.Context, limit time.Duration, client *vswitch.Client, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- client.Run(base) }()
	defer func() { stop(); <-done }()
	return do(ctx)
}

// printStep prints a step as it ends.
func (a *app) printStep(r step.Result) {
	line := fmt.Sprintf("%-8s %s: %s", r.Outcome, r.Step, r.Found)
	if r.Would != "" {
		line += "\n         " + r.Would
	}
	fmt.Fprintln(a.out.w, line)
}
