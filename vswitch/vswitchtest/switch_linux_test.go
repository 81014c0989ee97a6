package vswitchtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	os.Exit(m.Run())
}

func TestSwitchSurvivesRestartsOfItsDaemons(t *testing.T) {
	s := vswitchtest.Start(t)
	if err := s.AddBridge("br0", "netdev"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{s.StopVswitchd, s.StartVswitchd, s.PauseVswitchd, s.ResumeVswitchd, s.KillVswitchd, s.StartVswitchd, s.StopDB, s.StartDB} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.Ofctl("show", "unix:"+s.MgmtSock("br0"))
	if err != nil || !strings.Contains(out, "OFPT_FEATURES_REPLY (OF1.5)") {
		t.Fatalf("show: %v\n%s", err, out)
	}
}
