package sockettest

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns a path for a socket, short enough for one, that goes with the test.
func Path(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}
