package podnet

import (
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// EventType is the reason of an Event, as Kubernetes shows it.
type EventType string

const (
	// NetworkNotReady: the Pod has no network yet, longer than Config.NotReadyAfter; the message names the cause.
	NetworkNotReady EventType = "NetworkNotReady"
	// NetworkReady: the flows of a Pod that had to wait are in.
	NetworkReady EventType = "NetworkReady"
)

// Event is something that the owner of a Pod should see.
type Event struct {
	Type    EventType
	Key     ifstore.Key
	Pod     ifstore.Pod
	Message string
	Time    time.Time
}

// Op is an operation of a Network.
type Op string

const (
	OpAdd    Op = "add"    // Network.Add
	OpDelete Op = "delete" // Network.Delete, GC and the sweeps
	OpCheck  Op = "check"  // Network.Check
)

// Call describes a finished operation.
type Call struct {
	Op       Op
	Key      ifstore.Key
	Pod      ifstore.Pod
	Err      error // nil on success
	Duration time.Duration
	Steps    []StepTime // in the order in which they ran; the last one failed when Err is set
}

// StepTime is how long one step of an operation took.
type StepTime struct {
	Name     string // "lock", "allocate", "link", "port", "number", "flows" ...
	Duration time.Duration
}

// PortTiming is how long an interface took to become ready the first time.
// All durations count from the moment its port was asked of Open vSwitch.
type PortTiming struct {
	Key     ifstore.Key
	Waited  bool          // Add returned before the flows were in
	Number  time.Duration // until OVS gave a number
	Ready   time.Duration // until the switch confirmed the flows
	Restart bool          // the interface came from an earlier process; Number and Ready count from its Reconcile
}

// Observer receives measurements. Every function may be nil. They are called
// from the operation's own goroutine, must not block and must not call the
// Network.
type Observer struct {
	Call func(Call)
	Port func(PortTiming)
}
