package podflows_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/nettest"
)

// datapath lets the same tests run where the kernel has the openvswitch module.
var datapath = flag.String("datapath", "netdev", `datapath type of the test bridges: "netdev" or "system"`)

func TestMain(m *testing.M) {
	flag.Parse()
	nettest.Main()
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}
