package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A restart of the agent does not make the node NotReady; one that is away for long does.
func TestReadyLately(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ready")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	last := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	if err := os.Chtimes(file, last, last); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		conf netConf
		ago  time.Duration
		want bool
	}{
		{"restart", netConf{StatusGraceSeconds: 60, ReadyFile: file}, 59 * time.Second, true},
		{"away for long", netConf{StatusGraceSeconds: 60, ReadyFile: file}, 61 * time.Second, false},
		{"the clock was set back a little", netConf{StatusGraceSeconds: 60, ReadyFile: file}, -time.Second, true},
		{"the clock was set back a lot", netConf{StatusGraceSeconds: 60, ReadyFile: file}, -time.Hour, false},
		{"no grace", netConf{ReadyFile: file}, 0, false},
		{"never ready", netConf{StatusGraceSeconds: 60, ReadyFile: file + "x"}, 0, false},
		{"not told where", netConf{StatusGraceSeconds: 60}, 0, false},
	} {
		if got := test.conf.readyLately(last.Add(test.ago)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
