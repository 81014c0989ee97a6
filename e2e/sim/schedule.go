package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Schedule is everything that a run depends on.
type Schedule struct {
	Note       string  `json:"note,omitempty"` // what it has shown
	Seed       uint64  `json:"seed"`           // of the latencies
	Readiness  string  `json:"readiness"`      // Waiting, Async or Live
	Switch     string  `json:"switch"`         // Fake or Client
	Slow       int     `json:"slow"`           // how slow parts are, 0 to 3
	Containers int     `json:"containers"`     // two of them are sandboxes of one Pod
	Events     []Event `json:"events"`
}

// Readiness backends.
const (
	Waiting = "waiting" // backend/linux: Add waits for the number
	Async   = "async"   // podnet/async: any port that the session lists
	Live    = "live"    // podnet/async: the first flows need the LIVE bit
)

// OpenFlow sides.
const (
	Fake   = "fake"   // podnettest's
	Client = "client" // ofclient and podflows over oftest
)

// Event is one thing that happens. Which fields count depends on Do.
type Event struct {
	After Duration `json:"after,omitzero"` // since the event before
	Do    Kind     `json:"do"`
	C     int      `json:"c"`               // container
	Other int      `json:"other,omitempty"` // another one
	Op    string   `json:"op,omitempty"`    // the call of a part that shall fail
	How   string   `json:"how,omitempty"`   // in which way
	Times int      `json:"times,omitempty"` // how often
	For   Duration `json:"for,omitzero"`    // how long
}

// Kind is what an Event does.
type Kind string

const (
	Add          Kind = "add"           // the runtime asks for the container's interface, again if it is there
	AddLate      Kind = "add-late"      // the same, and the device comes by DeviceUp only
	Del          Kind = "del"           // the runtime asks for its removal
	DelBriefly   Kind = "del-briefly"   // with a deadline of half a second
	Check        Kind = "check"         // CNI CHECK
	GC           Kind = "gc"            // CNI GC with all that the runtime knows
	Die          Kind = "die"           // the container is gone and nobody deletes it
	DeviceUp     Kind = "device-up"     // the host device is there
	DeviceDown   Kind = "device-down"   // it vanishes
	DeviceError  Kind = "device-error"  // Open vSwitch cannot use it
	LiveOn       Kind = "live-on"       // the port has the LIVE bit
	LiveOff      Kind = "live-off"      // it loses it
	Renumber     Kind = "renumber"      // the port gets another number
	Steal        Kind = "steal"         // the port gets the number of Other, which gets another one
	Recreate     Kind = "recreate"      // somebody replaces the port's row by an equal one
	RemoveRow    Kind = "remove-row"    // somebody deletes the port's row
	SwitchRest   Kind = "ovs-restart"   // ovs-vswitchd is away for For; flows are gone, freed numbers come again
	SwitchStop   Kind = "ovs-stop"      // it is frozen for For
	OFDrop       Kind = "of-drop"       // the OpenFlow connection breaks
	OFAway       Kind = "of-away"       // and cannot be made for For
	LoseStatus   Kind = "lose-status"   // the next Times messages about ports are lost
	DBAway       Kind = "ovsdb-away"    // OVSDB cannot be reached for For
	AgentRestart Kind = "agent-restart" // the agent ends in order and starts after For
	AgentKill    Kind = "agent-kill"    // the agent ends in the middle of whatever it does and starts after For
	Fail         Kind = "fail"          // the next Times calls of Op for C fail as How says
	Hang         Kind = "hang"          // calls of Op for C hang for For
	Settle       Kind = "settle"        // faults end; after a while the world must be as the model says
)

// Ways to fail.
const (
	Plain         = "error"         // no effect
	UnknownAfter  = "unknown-after" // outcome unknown, it had its effect
	UnknownBefore = "unknown"       // outcome unknown, it had none
	NotConnected  = "not-connected" // the peer is away
)

// Duration is a time.Duration that JSON writes as text.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// IsZero lets JSON leave it out.
func (d Duration) IsZero() bool { return d == 0 }

// JSON returns the schedule for a file in testdata, one event a line.
func (s Schedule) JSON() string {
	events := s.Events
	s.Events = nil
	head, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers alone
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(string(head), "null}"))
	b.WriteString("[")
	for i, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %s", line)
	}
	b.WriteString("\n]}\n")
	return b.String()
}

// Parse reads what JSON wrote.
func Parse(text []byte) (Schedule, error) {
	var s Schedule
	err := json.Unmarshal(text, &s)
	return s, err
}
