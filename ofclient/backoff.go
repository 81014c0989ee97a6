package ofclient

import (
	"math/rand/v2"
	"time"
)

// backoff yields the pauses between attempts to connect: growing, bounded, and
// jittered so that the agents of a cluster do not dial in step.
type backoff struct {
	min, max time.Duration
	current  time.Duration
}

// next returns a pause between half of and the whole current step, and doubles the step.
func (b *backoff) next() time.Duration {
	b.current = min(max(2*b.current, b.min), b.max)
	return b.current/2 + rand.N(b.current/2+1)
}

func (b *backoff) reset() { b.current = 0 }
