// Package step takes a node to a state in steps: each is looked at, made so where it
// is not, and looked at again. A dry run only says what would be done.
package step

import (
	"context"
	"errors"
	"fmt"
)

// Step is one thing that has to be so on the node.
type Step struct {
	Name string
	// Look tells whether it is so and what was found. An error means that it cannot be told.
	Look func(ctx context.Context) (done bool, found string, err error)
	// Do makes it so. Nil: only an operator can.
	Do func(ctx context.Context) error
	// Would says what Do does, or what the operator has to do.
	Would string
}

// Outcome is what became of a step.
type Outcome string

// Outcomes.
const (
	Done    Outcome = "done"    // it was so already
	Changed Outcome = "changed" // it was made so
	Planned Outcome = "to do"   // a dry run leaves it
	Failed  Outcome = "failed"
)

// Result is a step with its outcome.
type Result struct {
	Step    string  `json:"step"`
	Outcome Outcome `json:"outcome"`
	Found   string  `json:"found"`
	Would   string  `json:"would,omitempty"` // what remains to be done
}

// ErrNotDone is returned when a step failed, or remains to be done by an operator.
var ErrNotDone = errors.New("the node is not prepared")

// Run goes through the steps in order and tells report of each. It stops at the
// first that fails, because the later ones rest on it. A dry run changes nothing,
// looks at all of them and ends well if it could.
func Run(ctx context.Context, steps []Step, dry bool, report func(Result)) error {
	for _, s := range steps {
		r := s.run(ctx, dry)
		report(r)
		if r.Outcome == Failed && !dry {
			return fmt.Errorf("%w: step %q: %s", ErrNotDone, s.Name, r.Found)
		}
	}
	return nil
}

func (s Step) run(ctx context.Context, dry bool) Result {
	r := Result{Step: s.Name, Outcome: Done}
	done, found, err := s.Look(ctx)
	r.Found = found
	switch {
	case err != nil:
		r.Outcome, r.Found, r.Would = Failed, err.Error(), s.Would
		return r
	case done:
		return r
	}
	r.Would = s.Would
	if dry {
		r.Outcome = Planned
		return r
	}
	if s.Do == nil {
		r.Outcome = Failed
		return r
	}
	if err := s.Do(ctx); err != nil {
		r.Outcome, r.Found = Failed, err.Error()
		return r
	}
	// What was asked for is looked at, not believed.
	done, found, err = s.Look(ctx)
	switch {
	case err != nil:
		r.Outcome, r.Found = Failed, err.Error()
	case !done:
		r.Outcome, r.Found = Failed, found+", right after it was changed"
	default:
		r.Outcome, r.Found, r.Would = Changed, found, ""
	}
	return r
}
