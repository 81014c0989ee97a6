package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/antrea-lite/podnet/vswitch"
)

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"2.12.9", "2.13.0", true}, {"2.13.0", "2.13.0", false}, {"2.13", "2.13.0", false}, {"3.1.0", "2.13.0", false},
		{"2.13.0-rc1", "2.13.0", false}, {"6.1.0-17-cloud-amd64", "4.18.0", false}, {"4.4", "4.18.0", true}, {"", "1.0.0", true}, {"10.0.0", "9.9.9", false},
	} {
		if got := Older(c.a, c.b); got != c.want {
			t.Errorf("Older(%q, %q) = %v", c.a, c.b, got)
		}
	}
	for _, c := range []struct {
		info vswitch.Info
		old  bool
	}{
		{vswitch.Info{OVSVersion: "2.5.0"}, true}, {vswitch.Info{OVSVersion: "3.1.0"}, false},
		{vswitch.Info{DBSchema: "7.16.1"}, true}, {vswitch.Info{DBSchema: "8.3.1"}, false}, {vswitch.Info{}, false},
		{vswitch.Info{OVSVersion: "2.17.0", DBSchema: "7.0.0"}, false}, // the program counts, not the file it found
	} {
		if err := OVSTooOld(c.info); (err != nil) != c.old {
			t.Errorf("%+v: %v", c.info, err)
		}
	}
}

// TestCNIConf: the file is valid, never half there, and one of other settings goes at the start.
func TestCNIConf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net.d")
	first, err := newCNIConf(dir, "/run/a.sock")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing is to be done
		if err := first.removeOther(); err != nil {
			t.Fatal(err)
		}
		if err := first.install(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(first.path())
	if err != nil || !json.Valid(b) {
		t.Fatalf("%v %s", err, b)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files %v", files)
	}
	second, err := newCNIConf(dir, "/run/b.sock")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.removeOther(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(second.path()); !os.IsNotExist(err) {
		t.Errorf("the file of other settings stays: %v", err)
	}
}
