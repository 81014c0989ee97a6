package podnet

import (
	"context"
	"fmt"
)

// undoStack takes back the steps of an Add that failed, last one first.
type undoStack struct {
	steps []undoStep
}

type undoStep struct {
	name string
	fn   func(ctx context.Context) error
}

// push adds the step that takes back what the caller is about to do or has done.
func (u *undoStack) push(name string, fn func(ctx context.Context) error) {
	u.steps = append(u.steps, undoStep{name: name, fn: fn})
}

// run takes back the steps in reverse. It stops at the first failure, because
// the order is what makes a removal safe: a number must not be freed while
// flows may stand, nor an address while its port does. What failed and what
// lies below stays on the stack.
func (u *undoStack) run(ctx context.Context) error {
	for len(u.steps) > 0 {
		last := u.steps[len(u.steps)-1]
		if err := last.fn(ctx); err != nil {
			return fmt.Errorf("undo of %s: %w", last.name, err)
		}
		u.steps = u.steps[:len(u.steps)-1]
	}
	return nil
}
