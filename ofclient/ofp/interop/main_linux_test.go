package interop

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

var update = flag.Bool("update", false, "write the captured frames to testdata/golden")

func TestMain(m *testing.M) {
	nettest.Main()
	goleak.VerifyTestMain(m)
}

// ofctl runs ovs-ofctl without a switch. A missing program fails the test.
func ofctl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("ovs-ofctl", append([]string{"-O", "OpenFlow15", "--no-names"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("ovs-ofctl %s: %v (Debian's openvswitch-switch must be installed)\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ovsText decodes frames with ovs-ofctl: one text for each frame. An echo
// request behind each frame shows where its text ends.
func ovsText(t *testing.T, frames [][]byte) []string {
	t.Helper()
	const marker = 0xfeed0000
	var all []byte
	for i, f := range frames {
		all = append(all, f...)
		all = append(all, encode(t, uint32(marker+i), &ofp.EchoRequest{})...)
	}
	file := filepath.Join(t.TempDir(), "frames")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
	out := ofctl(t, "ofp-parse", file)
	texts := make([]string, len(frames))
	for i := range frames {
		end := fmt.Sprintf("OFPT_ECHO_REQUEST (OF1.5) (xid=%#x): 0 bytes of payload\n", marker+i)
		text, rest, ok := strings.Cut(out, end)
		if !ok {
			t.Fatalf("ovs-ofctl printed %d messages of %d, then:\n%s", i, len(frames), out)
		}
		texts[i], out = strings.TrimSpace(text), rest
	}
	return texts
}

func encode(t *testing.T, xid uint32, m ofp.Message) []byte {
	t.Helper()
	b, err := ofp.Append(nil, xid, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
