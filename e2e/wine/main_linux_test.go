package wine

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/antrea-lite/podnet/internal/nettest"
)

// What the scenarios run; paths are made absolute before any test starts.
var options struct {
	agent, cni, relay string // Windows binaries
	prefix            string // the script
}

// inside says to a process which scenario it is.
const inside = "PODNET_WINE_SCENARIO"

func TestMain(m *testing.M) {
	for _, f := range []struct {
		to              *string
		name, at, usage string
	}{
		{&options.agent, "agent", "../../bin/antrea-lite.exe", "the agent's binary"},
		{&options.cni, "cni", "../../bin/antrea-lite-cni.exe", "the plugin's binary"},
		{&options.relay, "relay", "../../bin/piperelay.exe", "the binary of e2e/wine/piperelay"},
		{&options.prefix, "prefix", "prefix", "the script that makes Wine prefixes"},
	} {
		flag.StringVar(f.to, f.name, f.at, f.usage)
	}
	flag.Parse()
	if os.Getenv(inside) != "" {
		nettest.Main()
	}
	for _, p := range []*string{&options.agent, &options.cni, &options.relay, &options.prefix} {
		abs, err := filepath.Abs(*p)
		if err == nil {
			_, err = os.Stat(abs)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "wine: %v\nThe scenarios drive the built binaries: run `make e2e-wine`.\n", err)
			os.Exit(1)
		}
		*p = abs
	}
	os.Exit(m.Run())
}

// scenario plays body in a process of its own, in network, mount and PID
// namespaces of its own: each has its Open vSwitch and its Wine, and those with
// long waits run beside each other.
func scenario(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(inside) == t.Name() {
		body(t)
		return
	}
	t.Parallel()
	args := append(os.Args[1:len(os.Args):len(os.Args)], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v=true")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}
