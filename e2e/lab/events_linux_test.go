package lab

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEventsAreReadFromTheAgentsLog(t *testing.T) {
	const log = `I1201 12:27:00.000001  4711 agent_linux.go:170] "Agent started" version="v" pid=4711
I1201 12:28:21.123456  4711 agent_linux.go:170] "Pod event" part="network" type="NetworkNotReady" pod="default/slow" interface="c1/eth0" message="interface \"eth0\" has no network"
I1201 12:28:22.000000  4711 agent_linux.go:170] "Pod event" type="NetworkReady" pod="default/slow" interface="c1/eth0" message="flows are in"
E1201 12:28:23.000000  4711 agent_linux.go:170] "Pod event" type="NetworkReady" pod="an/error" interface="c/e" message="is none"
I1201 12:28:24.000000  4711 agent_linux.go:170] "Pod event" type="NetworkReady" pod="default/cut" interface="c2/eth0" message="the agent was kil`
	at := func(min, sec, micro int) time.Time {
		return time.Date(time.Now().Year(), 12, 1, 12, min, sec, micro*1000, time.Local)
	}
	want := []PodEvent{
		{Time: at(28, 21, 123456), Type: "NetworkNotReady", Pod: "default/slow", Interface: "c1/eth0", Message: `interface "eth0" has no network`},
		{Time: at(28, 22, 0), Type: "NetworkReady", Pod: "default/slow", Interface: "c1/eth0", Message: "flows are in"},
	}
	if diff := cmp.Diff(want, parseEvents(log)); diff != "" {
		t.Error(diff)
	}
}
