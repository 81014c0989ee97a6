package sim

import (
	"math/rand/v2"
	"time"
)

// Generate makes the schedule of a seed.
func Generate(seed uint64) Schedule {
	rng := rand.New(rand.NewPCG(seed, 0x706f646e6574))
	s := Schedule{
		Seed:       seed,
		Readiness:  pick(rng, Waiting, Async, Live),
		Switch:     pick(rng, Fake, Fake, Fake, Client),
		Slow:       rng.IntN(4),
		Containers: 1 + rng.IntN(5),
	}
	for n := 3 + rng.IntN(28); n > 0; n-- {
		s.Events = append(s.Events, event(rng, s))
	}
	return s
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// kinds says how often an event of each kind comes, in parts of the sum.
var kinds = []struct {
	weight int
	kind   Kind
}{
	{26, Add}, {8, AddLate}, {12, Del}, {3, DelBriefly}, {2, Check}, {2, GC}, {2, Die},
	{5, DeviceUp}, {4, DeviceDown}, {2, DeviceError}, {3, LiveOn}, {3, LiveOff},
	{4, Renumber}, {4, Steal}, {1, Recreate}, {1, RemoveRow},
	{4, SwitchRest}, {3, SwitchStop}, {3, OFDrop}, {4, OFAway}, {2, LoseStatus}, {3, DBAway},
	{3, AgentRestart}, {3, AgentKill}, {10, Fail}, {5, Hang}, {2, Settle},
}

// ops are the calls of parts that may fail. Those that make something and fail
// afterwards are held to leave nothing behind, so they fail before.
var ops = []struct {
	op   string
	hows []string
}{
	{"AddPort", []string{Plain, UnknownAfter, UnknownBefore, NotConnected}},
	{"DeletePort", []string{Plain, UnknownAfter, UnknownBefore, NotConnected}},
	{"SetExternalIDs", []string{Plain, UnknownAfter, NotConnected}},
	{"Ports", []string{Plain, NotConnected}},
	{"OFPort", []string{NotConnected}},
	{"Install", []string{Plain, UnknownAfter, UnknownBefore, NotConnected}},
	{"Uninstall", []string{Plain, UnknownAfter, UnknownBefore, NotConnected}},
	{"Replace", []string{Plain, UnknownAfter, UnknownBefore, NotConnected}},
	{"Replay", []string{Plain, UnknownAfter}},
	{"Commit", []string{UnknownAfter, UnknownBefore}},
	{"Link", []string{Plain}},
	{"Unlink", []string{Plain}},
	{"UnlinkOrphan", []string{Plain}},
	{"Allocate", []string{Plain}},
	{"Release", []string{Plain}},
	{"Keep", []string{Plain}},
	{"Alive", []string{Plain}},
	{"Prepare", []string{Plain}},
}

func event(rng *rand.Rand, s Schedule) Event {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	e := Event{C: rng.IntN(s.Containers), After: pause(rng)}
	at := rng.IntN(sum)
	for _, k := range kinds {
		if at -= k.weight; at < 0 {
			e.Do = k.kind
			break
		}
	}
	switch e.Do {
	case Steal:
		e.Other = rng.IntN(s.Containers)
	case SwitchRest, SwitchStop, OFAway, DBAway, AgentRestart, AgentKill:
		e.For = pick(rng, pause(rng), pause(rng), Duration(time.Duration(rng.IntN(60))*time.Second))
	case LoseStatus:
		e.Times = 1 + rng.IntN(4)
	case Fail:
		o := ops[rng.IntN(len(ops))]
		e.Op, e.How, e.Times = o.op, pick(rng, o.hows...), 1+rng.IntN(3)
		if e.Op == "Ports" || e.Op == "Replay" || e.Op == "Keep" || e.Op == "Commit" {
			e.C = -1
		}
	case Hang:
		e.Op = ops[rng.IntN(len(ops))].op
		e.For = Duration(time.Duration(1+rng.IntN(60)) * time.Second)
	}
	return e
}

// pause is mostly short, so that events meet what others have begun.
func pause(rng *rand.Rand) Duration {
	switch rng.IntN(10) {
	case 0, 1:
		return 0
	case 2, 3, 4:
		return Duration(time.Duration(rng.IntN(20)) * time.Millisecond)
	case 5, 6:
		return Duration(time.Duration(rng.IntN(500)) * time.Millisecond)
	case 7, 8:
		return Duration(time.Duration(rng.IntN(10_000)) * time.Millisecond)
	}
	return Duration(time.Duration(rng.IntN(90)) * time.Second)
}
