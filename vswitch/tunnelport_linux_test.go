package vswitch_test

import (
	"errors"
	"testing"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
)

func TestEnsureTunnelPort(t *testing.T) {
	sw, c := setUp(t)
	owner := map[string]string{"podnet-owner": "tester"}
	want := vswitch.Tunnel{Name: "tun0", Type: "geneve", Options: map[string]string{"remote_ip": "flow", "key": "flow"}, ExternalIDs: owner}
	first, err := c.EnsureTunnelPort(soon(t), want)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitOFPort(soon(t), first); err != nil {
		t.Fatal(err)
	}
	again, err := c.EnsureTunnelPort(soon(t), want)
	if err != nil || again != first {
		t.Errorf("again: %v, %v, want %v", again, err, first)
	}
	// Another kind of tunnel, and an option less.
	want.Type, want.Options = "vxlan", map[string]string{"remote_ip": "flow"}
	if again, err = c.EnsureTunnelPort(soon(t), want); err != nil || again != first {
		t.Errorf("changed: %v, %v", again, err)
	}
	for column, value := range map[string]string{"type": "vxlan", "options": `{remote_ip=flow}`} {
		if got := vsctl(t, sw, "get", "interface", "tun0", column); got != value {
			t.Errorf("%s is %s, want %s", column, got, value)
		}
	}
	for name, set := range map[string][]string{
		"somebody's tunnel": {"add-port", br, "tun1", "--", "set", "interface", "tun1", "type=geneve", "options:remote_ip=192.0.2.1"},
		"our own gateway":   {"add-port", br, "tun1", "--", "set", "interface", "tun1", "type=internal", "--", "set", "port", "tun1", "external_ids:podnet-owner=tester"},
	} {
		vsctl(t, sw, "--if-exists", "del-port", br, "tun1")
		vsctl(t, sw, set...)
		want.Name = "tun1"
		w := c.WatchOFPorts()
		until(t, w, name, func() bool {
			_, err = c.EnsureTunnelPort(soon(t), want)
			return errors.Is(err, podnet.ErrPortExists)
		})
		w.Close()
	}
}
