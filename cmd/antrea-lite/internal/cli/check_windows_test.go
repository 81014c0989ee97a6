package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/internal/sockettest"
)

// TestCheckWithoutAgent: it says what is missing, and fails.
func TestCheckWithoutAgent(t *testing.T) {
	pipe := sockettest.Path(t)
	args := []string{"check", "--cni-socket", pipe, "--ovsdb", "tcp:127.0.0.1:1", "--openflow", `npipe:\\.\pipe\no-switch.mgmt`}
	out, err := antrea(t, append(args, "--pod-cidrs", "10.10.0.0/24", "--gateway", "nogw0")...)
	if !errors.Is(err, errFailed) {
		t.Errorf("error %v", err)
	}
	for _, w := range []string{pipe, "antrea-lite agent", "127.0.0.1:1", "nogw0", "docs/windows.md", "Windows", "HNS network antrea-lite"} {
		if !strings.Contains(out, w) {
			t.Errorf("%q is missing in\n%s", w, out)
		}
	}
	out, err = antrea(t, append(args, "-o", "json")...)
	var findings []api.Finding
	if !errors.Is(err, errFailed) || json.Unmarshal([]byte(out), &findings) != nil || findings[0].Level != api.Fail || !strings.Contains(findings[0].Found, "podCIDRs") {
		t.Errorf("%v\n%s", err, out)
	}
}
