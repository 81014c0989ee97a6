package vswitch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/podnet"
)

func TestPortComesAndGoes(t *testing.T) {
	sw, c := setUp(t)
	name := veth(t, "v1")
	key := add(t, c, name)
	n := number(t, c, key)
	if out := vsctl(t, sw, "get", "interface", name, "ofport", "_uuid"); out != strings.Join([]string{itoa(n), key.Gen}, "\n") {
		t.Errorf("Open vSwitch says %q, the client %d %s", out, n, key.Gen)
	}
	if got, err := c.OFPort(soon(t), podnet.PortKey{Name: name}); got != n || err != nil {
		t.Errorf("OFPort by name: %d, %v", got, err)
	}
	// RS-14: never marked as one that a restart of Open vSwitch may scrub.
	if out := vsctl(t, sw, "get", "port", name, "other_config"); out != "{}" {
		t.Errorf("other_config %s", out)
	}
	ports, err := c.Ports(soon(t))
	if err != nil || len(ports) != 2 {
		t.Fatalf("%d ports, %v", len(ports), err)
	}
	want := port(name)
	want.PortKey, want.OFPort = key, int32(n)
	if diff := cmp.Diff(want, ports[1]); diff != "" {
		t.Error(diff)
	}
	// DB-11: what was given out is the caller's.
	ports[1].ExternalIDs["podnet-owner"] = "changed"
	if again, err := c.Ports(soon(t)); err != nil || again[1].ExternalIDs["podnet-owner"] != "test" {
		t.Errorf("a caller changed the client's copy: %v, %v", again[1].ExternalIDs, err)
	}
	if _, err := c.AddPort(soon(t), port(name)); !errors.Is(err, podnet.ErrPortExists) || !strings.Contains(err.Error(), "owner test, container c-v1") {
		t.Errorf("second AddPort: %v", err)
	}
	for range 2 {
		if err := c.DeletePort(soon(t), key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.OFPort(soon(t), key); !errors.Is(err, podnet.ErrNoPort) {
		t.Errorf("OFPort of a deleted port: %v", err)
	}
	if out := vsctl(t, sw, "list-ports", br); out != "" {
		t.Errorf("left: %s", out)
	}
}
