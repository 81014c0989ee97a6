package e2e

import (
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// Without this, a switch that fell back to the other datapath would let every
// scenario pass on the wrong one.
func TestSwitchRunsOnTheDatapathAskedFor(t *testing.T) {
	sw := vswitchtest.Start(t)
	if err := sw.AddBridge("br0", options.datapath); err != nil {
		t.Fatal(err)
	}
	want := options.datapath + "@ovs-" + options.datapath
	out, err := sw.Appctl("dpctl/dump-dps")
	if err != nil || strings.TrimSpace(out) != want {
		t.Errorf("datapaths %q %v, want %q", out, err, want)
	}
	show, err := sw.Appctl("dpctl/show", want)
	if err != nil || !strings.Contains(show, "br0 (internal)") {
		// The userspace datapath calls the same port a tap.
		if !strings.Contains(show, "br0 (tap)") {
			t.Errorf("ports of %s: %v\n%s", want, err, show)
		}
	}
	if err := lab.EndSwitch(sw); err != nil {
		t.Error(err)
	}
}
