package vswitch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
)

func TestStandaloneBridge(t *testing.T) {
	sw, _ := setUp(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Bridge: "br-phy", Datapath: "netdev", Standalone: true})
	if err := c.DeleteBridge(soon(t)); err != nil {
		t.Errorf("none there: %v", err)
	}
	if _, err := c.EnsureBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	if got := vsctl(t, sw, "get", "bridge", "br-phy", "fail_mode"); got != "standalone" {
		t.Errorf("fail_mode %s", got)
	}
	for _, mac := range []ifstore.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}} {
		if err := c.SetHWAddr(soon(t), mac); err != nil {
			t.Fatal(err)
		}
		if got := vsctl(t, sw, "get", "bridge", "br-phy", "other_config:hwaddr"); got != `"`+mac.String()+`"` {
			t.Errorf("hwaddr %s, want %s", got, mac)
		}
	}
	key, err := c.EnsureInternalPort(soon(t), "p0", [6]byte{}, map[string]string{"podnet-owner": "me"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteBridge(soon(t)); !errors.Is(err, podnet.ErrPortExists) || !strings.Contains(err.Error(), "p0") {
		t.Errorf("with a port: %v", err)
	}
	if err := c.DeletePort(soon(t), key); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	if got := vsctl(t, sw, "list-br"); got != br {
		t.Errorf("bridges %q", got)
	}
}
