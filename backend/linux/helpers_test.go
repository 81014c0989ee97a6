package linux

import (
	"strings"
	"testing"
)

// wantText fails unless err says every one of want.
func wantText(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
