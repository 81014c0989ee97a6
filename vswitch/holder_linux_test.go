package vswitch_test

import "testing"

func TestInternalPortOf(t *testing.T) {
	sw, c := setUp(t)
	vsctl(t, sw, "add-br", "br-phy", "--", "set", "bridge", "br-phy", "datapath_type=netdev")
	add(t, c, "device")
	w := c.WatchOFPorts()
	defer w.Close()
	until(t, w, "the other bridge", func() bool {
		holder, err := c.InternalPortOf(soon(t), "br-phy")
		return err == nil && holder == "br-phy"
	})
	for name, want := range map[string]string{br: br, "device": "", "lo": ""} {
		if got, err := c.InternalPortOf(soon(t), name); err != nil || got != want {
			t.Errorf("%s: bridge %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{br: br, "device": br, "br-phy": "br-phy", "lo": ""} {
		if got, err := c.BridgeOf(soon(t), name); err != nil || got != want {
			t.Errorf("%s: on bridge %q, %v; want %q", name, got, err, want)
		}
	}
}
