package cli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
)

// TestCheckWithoutAgent: it says what is missing, and fails.
func TestCheckWithoutAgent(t *testing.T) {
	dir := t.TempDir()
	args := []string{"check", "--cni-socket", filepath.Join(dir, "no.sock"), "--ovsdb", "unix:" + filepath.Join(dir, "no-db.sock"), "--ovs-run-dir", dir}
	out, err := antrea(t, append(args, "--pod-cidrs", "10.10.0.0/24", "--gateway", "nogw0")...)
	if !errors.Is(err, errFailed) {
		t.Errorf("error %v", err)
	}
	for _, w := range []string{"no.sock", "antrea-lite agent", "no-db.sock", "nogw0", "Linux"} {
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
