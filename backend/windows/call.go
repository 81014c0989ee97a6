package windows

import (
	"time"
)

// Op is a kind of call to HNS. Each has its own share of calls that may be
// under way, so that deletes which hang do not keep containers from starting.
type Op string

// The operations.
const (
	OpList           Op = "list"
	OpCreateNetwork  Op = "create network"
	OpCreateEndpoint Op = "create endpoint"
	OpDeleteEndpoint Op = "delete endpoint"
	OpAttach         Op = "attach"
	OpDetach         Op = "detach"
)

// ops are all operations.
var ops = [...]Op{OpList, OpCreateNetwork, OpCreateEndpoint, OpDeleteEndpoint, OpAttach, OpDetach}

// Call is one call to HNS that has returned, for metrics.
type Call struct {
	Op       Op
	Duration time.Duration
	Err      error
	// Left: nobody waited for the answer any more.
	Left bool
}

// Health is how HNS answers at the moment.
type Health struct {
	Running int           // calls under way
	Overdue int           // those of them that have lasted longer than Config.CallTimeout
	Oldest  time.Duration // how long the oldest of them has lasted
	// Stuck names the operations of which no further call is made because every
	// one that may be under way is overdue.
	Stuck []Op
}
