package elfdeps

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	files, err := Of("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libc.so.6"} {
		i := slices.IndexFunc(files, func(f File) bool { return f.Path == want })
		if i < 0 {
			t.Errorf("%v lack %s", files, want)
			continue
		}
		if _, err := os.Stat(files[i].Host); err != nil {
			t.Error(err)
		}
	}
}

func TestOfWhatIsNoProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Of(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v does not name %s", err, path)
	}
}
